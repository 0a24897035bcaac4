"""broker.log: when a broker started, was ready and stopped, its roles, and the topics that it created and deleted."""

from __future__ import annotations

from typing import Final

from mqreplay.decode.logs.broker_facts import (
    Booted,
    Registered,
    RoleBegun,
    RoleTaken,
    Setting,
    StartFailed,
    Stopped,
    TermBegun,
    TopicCreated,
    TopicDeleted,
)
from mqreplay.decode.logs.form import Form

_SETTINGS: Final = ("brokerName", "brokerId", "brokerIP1", "listenPort", "brokerClusterName")
_LIFE: Final = (
    Form("The broker[{broker_name}, {broker_addr}] boot success. {:text}", Booted, "BrokerStartup", signs=None),
    Form(
        "register broker[{broker_id:int}]{? }to name server {:name} OK",
        Registered,
        "BrokerOuterAPI#registerBrokerAll",
        signs=None,
    ),
    Form(
        "unregisterBroker OK, NamesrvAddr: {:name}",
        Stopped,
        "BrokerOuterAPI#unregisterBroker",
        start="unregisterBroker OK",
        signs=None,
    ),
    *(
        Form(
            f"{name}={{value}}",
            Setting,
            "MixAll#printObjectProperties",
            constants={"name": name},
            start=name,
            signs=None,
            whole=True,
        )
        for name in _SETTINGS
    ),
)
_START: Final = (
    Form("Failed to initialize", StartFailed, "BrokerController#initialize", versions="4", signs=None),
    Form(
        "BrokerController#initialize: unexpected error occurs",
        StartFailed,
        "BrokerController#initializeMessageStore",
        versions="5",
        signs=None,
    ),
)
_BEGIN_MASTER, _BEGIN_SLAVE = "Begin to change to master", "Begin to change to slave"
_ROLES: Final = (
    Form(
        "Begin handling broker role change term={term:long} role={role:word} currStoreRole={previous:word}",
        TermBegun,
        "DLedgerRoleChangeHandler#handle",
        start="Begin handling broker role change ",
    ),
    Form(
        "Begin to change to master brokerName={broker_name}",
        RoleBegun,
        "DLedgerRoleChangeHandler",
        constants={"role": "master"},
        start=_BEGIN_MASTER,
    ),
    Form(
        "Begin to change to slave brokerName={broker_name} brokerId={broker_id:int}",
        RoleBegun,
        "DLedgerRoleChangeHandler",
        constants={"role": "slave"},
        start=_BEGIN_SLAVE,
    ),
    Form(
        "Begin to change to master, brokerName:{broker_name}, replicas:{broker_addr}, new Epoch:{epoch:int}",
        RoleBegun,
        "ReplicasManager#changeToMaster",
        versions="5",
        constants={"role": "master"},
        start=_BEGIN_MASTER,
    ),
    Form(
        "Begin to change to slave, brokerName={broker_name}, brokerId={broker_id:int}, "
        "newMasterBrokerId={master_id:int}, newMasterAddress={master_addr}, newMasterEpoch={epoch:int}",
        RoleBegun,
        "ReplicasManager#changeToSlave",
        versions="5",
        constants={"role": "slave"},
        start=_BEGIN_SLAVE,
    ),
    Form(
        "Begin to change to slave, brokerName={broker_name}, replicas={broker_addr}, brokerId={broker_id:int}",
        RoleBegun,
        "ReplicasManager#changeToSlave",
        versions="5",
        constants={"role": "slave"},
        start=_BEGIN_SLAVE,
    ),
    Form(
        "Change broker [id:{broker_id:int}][address:{broker_addr}] to {role:word}, newMasterBrokerId:{master_id:int}, "
        "newMasterAddress:{master_addr}, newMasterEpoch:{epoch:int}, syncStateSetEpoch:{:int}",
        RoleTaken,
        "ReplicasManager#registerBrokerWhenRoleChange",
        versions="5",
        start="Change broker [id:",
    ),
)
_TOPICS: Final = (
    *(
        Form(
            f"create new topic {bracket}TopicConfig [topicName={{topic:key}}, {{:text}}",
            TopicCreated,
            "TopicConfigManager",
            start="create new topic ",
            signs=None,
        )
        for bracket in ("", "[")
    ),
    Form(
        "delete topic config OK, topic: TopicConfig [topicName={topic:key}, {:text}",
        TopicDeleted,
        "TopicConfigManager#deleteTopicConfig",
        start="delete topic config OK, ",
        signs=None,
    ),
)
FORMS: Final = (*_LIFE, *_START, *_ROLES, *_TOPICS)
