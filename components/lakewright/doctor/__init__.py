"""What a machine and a tenant need to run: what is there, what is missing, and how to mend it."""

from lakewright.doctor.finding import Finding, State
from lakewright.doctor.machine import look_at_machine
from lakewright.doctor.services import look_at_surroundings

__all__ = ["Finding", "State", "look_at_machine", "look_at_surroundings"]
