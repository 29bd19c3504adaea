"""Mean test costs against everything that a user could pick instead."""
