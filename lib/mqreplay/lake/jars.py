DELTA_PACKAGE = "io.delta:delta-spark_4.1_2.13:4.4.0"


def missing_jars():
    return []
