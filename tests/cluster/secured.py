"""Clusters with ACL or TLS, and their users."""

from __future__ import annotations

from cluster.clients import ClientProcess
from cluster.clusters import Cluster, Server

Keys = tuple[str, str]
ADMINISTRATOR: Keys = ("mintmaster", "engraver-0815")
READER: Keys = ("nightwatch", "lantern-4711")  # may read all and change nothing
TLS_CLIENTS = ["-Dtls.enable=true", "-Dtls.test.mode.enable=false", "-Dtls.client.authServer=false"]


def tls_servers(cert: str, key: str) -> list[str]:
    """Return Java options of name servers and brokers that take TLS only."""
    server = [f"-Dtls.server.certPath={cert}", f"-Dtls.server.keyPath={key}", "-Dtls.server.mode=enforcing"]
    return [*server, *TLS_CLIENTS]


PLAIN_ACL = """globalWhiteRemoteAddresses: []
accounts:
- accessKey: {administrator[0]}
  secretKey: {administrator[1]}
  admin: true
- accessKey: {reader[0]}
  secretKey: {reader[1]}
  admin: false
  defaultTopicPerm: SUB
  defaultGroupPerm: SUB
"""
PROVIDERS = "org.apache.rocketmq.auth"
AUTHENTICATION = {
    "authenticationEnabled": "true",
    "authenticationProvider": f"{PROVIDERS}.authentication.provider.DefaultAuthenticationProvider",
    "authenticationMetadataProvider": f"{PROVIDERS}.authentication.provider.LocalAuthenticationMetadataProvider",
    "initAuthenticationUser": f'{{"username":"{ADMINISTRATOR[0]}","password":"{ADMINISTRATOR[1]}"}}',
    "innerClientAuthenticationCredentials": f'{{"accessKey":"{ADMINISTRATOR[0]}","secretKey":"{ADMINISTRATOR[1]}"}}',
    "authorizationEnabled": "true",
    "authorizationProvider": f"{PROVIDERS}.authorization.provider.DefaultAuthorizationProvider",
    "authorizationMetadataProvider": f"{PROVIDERS}.authorization.provider.LocalAuthorizationMetadataProvider",
}


def add_acl_broker(cluster: Cluster, broker_name: str) -> Server:
    """Define a master that refuses requests without a valid signature."""
    if not cluster.version.startswith("4."):
        return cluster.add_broker(broker_name, **AUTHENTICATION)
    server = cluster.add_broker(broker_name, aclEnable="true")
    users = PLAIN_ACL.format(administrator=ADMINISTRATOR, reader=READER)
    (server.home / "conf" / "plain_acl.yml").write_text(users)
    return server


def create_reader(cluster: Cluster, administrator: ClientProcess) -> None:
    """Create the user who may only read, where plain_acl.yml does not already name it."""
    if cluster.version.startswith("4."):
        return
    for server in cluster.servers.values():
        if not server.is_name_server:
            administrator.create_user(server.address, *READER, "Normal")
            resources = ["Cluster:*", "Topic:*", "Group:*"]
            administrator.create_acl(server.address, f"User:{READER[0]}", resources, ["Get", "List"])
