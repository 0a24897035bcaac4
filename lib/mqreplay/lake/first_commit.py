"""What the first commit of a table says beside its files: the same as CREATE TABLE by the contract's DDL.

With it, a table is made by the commit that brings its first rows. CREATE TABLE costs as much as that again, and in a
first night there is one for each table before a file is read.
"""

from __future__ import annotations

import json
import time
import uuid

from mqreplay.lake.contract import Contract


def metadata(contract: Contract) -> str:
    """Delta's action metaData, as JSON. Needs a running session, for the columns' types."""
    fields = [field.jsonValue() for field in contract.struct_type().fields]
    for field, column in zip(fields, contract.columns, strict=True):
        field["metadata"] = {"comment": column.comment}
    features = {"delta.feature.clustering": "supported"} if contract.clustered_by else {}
    said = {
        "id": str(uuid.uuid4()),
        "description": contract.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": contract.properties | features,
        "createdTime": time.time_ns() // 1_000_000,
    }
    return json.dumps({"metaData": said})


def clustering(contract: Contract) -> list[str]:
    """Delta's action domainMetadata that names the columns of CLUSTER BY, as JSON; none where there are none."""
    if not contract.clustered_by:
        return []
    named = {"clusteringColumns": [[name] for name in contract.clustered_by], "domainName": "delta.clustering"}
    said = {"domain": "delta.clustering", "configuration": json.dumps(named), "removed": False}
    return [json.dumps({"domainMetadata": said})]
