"""Checks of the machine and of the services that a stack needs. Nothing here changes anything."""

from lakewright.doctor.finding import Finding
from lakewright.doctor.machine import check_machine
from lakewright.doctor.services import check_platform, check_services
from lakewright.doctor.tag_policy import check_tag_policy

__all__ = ["Finding", "check_machine", "check_platform", "check_services", "check_tag_policy"]
