#!/bin/bash
# Make tests/vectors/data/pop_*_vNNN.jsonl.gz by the classes of the given versions of RocketMQ, 5.3.3 or later.
# usage: tools/vectors/pop/make.sh 5.3.3 5.5.0
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
data=$here/../../../tests/vectors/data
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for version in "$@"; do
  mkdir -p "$work/$version/lib" "$work/$version/classes"
  mvn -q -B -f "$here/pom.xml" -Drocketmq.version="$version" dependency:copy-dependencies -DoutputDirectory="$work/$version/lib"
  javac -nowarn -d "$work/$version/classes" -cp "$work/$version/lib/*" "$here"/*.java
  java -Duser.timezone=UTC -Dfile.encoding=UTF-8 -Duser.home="$work/$version" -cp "$work/$version/classes:$work/$version/lib/*" \
    org.apache.rocketmq.broker.processor.Vectors "$data" "_v${version//./}"
done
