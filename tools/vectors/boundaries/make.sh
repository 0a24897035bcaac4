#!/bin/bash
# Make tests/vectors/data/fault_strategy_vNNN.jsonl.gz and second_try_vNNN.jsonl.gz by the classes of the given versions of RocketMQ.
# usage: tools/vectors/boundaries/make.sh 4.9.7 5.1.0 5.1.1 5.1.3 5.1.4
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=$here/../../../tests/vectors/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for version in "$@"; do
  lib=${ROCKETMQ_LIBS:+$ROCKETMQ_LIBS/$version/lib}
  if [ -z "$lib" ]; then
    lib=$work/$version/lib
    mvn -q -B -f "$here/../versions/pom.xml" -Drocketmq.version="$version" dependency:copy-dependencies -DoutputDirectory="$lib"
  fi
  mkdir -p "$work/$version/classes"
  javac -nowarn -d "$work/$version/classes" -cp "$lib/*" "$here"/*.java
  java -Duser.timezone=UTC -Dfile.encoding=UTF-8 -Duser.home="$work/$version" -cp "$work/$version/classes:$lib/*" \
    org.apache.rocketmq.broker.processor.Boundaries "$data" "_v${version//./}" >/dev/null
done
