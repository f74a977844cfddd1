"""Examples that hypothesis draws where a test has a device, or ranks, of its own."""

from hypothesis import HealthCheck, settings


def examples(count):
    """Settings for so many examples, without a limit of time, with one fixture."""
    return settings(
        max_examples=count,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
