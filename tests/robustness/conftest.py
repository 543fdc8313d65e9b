from tests.real_redis import own_redis, redis_program, redis_server

__all__ = ["own_redis", "redis_program", "redis_server"]
