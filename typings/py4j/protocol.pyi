"""Types of the errors of py4j, which has none of its own."""

from typing import Any

class Py4JError(Exception): ...

class Py4JJavaError(Py4JError):
    errmsg: str
    java_exception: Any
    """The exception of Java, behind py4j."""
