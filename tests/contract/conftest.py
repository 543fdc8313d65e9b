from tests.real_redis import (
    own_redis,
    redis_cluster,
    redis_program,
    redis_sentinel,
    redis_server,
)

__all__ = ["own_redis", "redis_cluster", "redis_program", "redis_sentinel", "redis_server"]
