"""Metrics of several processes, merged as the metrics of one server."""

from __future__ import annotations

import pytest

from steersman.controlplane.workers.pool import pause
from steersman.controlplane.workers.sums import summed

ONE = """\
# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{verb="GET"} 3
requests_total{verb="PUT"} 1
# HELP apiserver_storage_objects Objects.
# TYPE apiserver_storage_objects gauge
apiserver_storage_objects{resource="pods"} 7
# HELP seconds Durations.
# TYPE seconds histogram
seconds_bucket{le="1"} 1
seconds_bucket{le="+Inf"} 2
seconds_sum 3.5
seconds_count 2
# HELP process_start_time_seconds Start.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 100.5
# HELP open Open connections.
# TYPE open gauge
open 2
"""
OTHER = """\
# HELP requests_total Requests.
# TYPE requests_total counter
requests_total{verb="GET"} 4
# HELP apiserver_storage_objects Objects.
# TYPE apiserver_storage_objects gauge
apiserver_storage_objects{resource="pods"} 6
# HELP seconds Durations.
# TYPE seconds histogram
seconds_bucket{le="1"} 0
seconds_bucket{le="+Inf"} 1
seconds_sum 2.25
seconds_count 1
# HELP process_start_time_seconds Start.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 99
# HELP open Open connections.
# TYPE open gauge
open 1
"""


async def test_counts_are_added_and_what_is_one_for_all_is_not() -> None:
    assert b"".join(await summed([ONE, OTHER])).decode().splitlines() == [
        "# HELP requests_total Requests.",
        "# TYPE requests_total counter",
        'requests_total{verb="GET"} 7',
        'requests_total{verb="PUT"} 1',
        "# HELP apiserver_storage_objects Objects.",
        "# TYPE apiserver_storage_objects gauge",
        'apiserver_storage_objects{resource="pods"} 7',
        "# HELP seconds Durations.",
        "# TYPE seconds histogram",
        'seconds_bucket{le="1"} 1',
        'seconds_bucket{le="+Inf"} 3',
        "seconds_sum 5.75",
        "seconds_count 3",
        "# HELP process_start_time_seconds Start.",
        "# TYPE process_start_time_seconds gauge",
        "process_start_time_seconds 99",
        "# HELP open Open connections.",
        "# TYPE open gauge",
        "open 3",
    ]


async def test_of_processes_that_have_ended_only_counts_remain() -> None:
    lines = b"".join(await summed([ONE], OTHER)).decode().splitlines()
    assert 'requests_total{verb="GET"} 7' in lines
    assert "open 2" in lines


@pytest.mark.parametrize(("failures", "seconds"), [(0, 0.0), (1, 0.1), (2, 0.2), (5, 1.6), (20, 30.0), (5000, 30.0)])
def test_the_pause_before_another_start_grows_within_a_bound(failures: int, seconds: float) -> None:
    assert pause(failures) == pytest.approx(seconds)
