"""The error that is the user's to mend."""


class UserError(Exception):
    """A mistake of the user's: printed without a traceback, exit status 2."""
