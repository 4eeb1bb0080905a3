"""The data sets, methods and measurements of the CIPLS paper."""
