from tests.real_redis import redis_program, redis_server

__all__ = ["redis_program", "redis_server"]
