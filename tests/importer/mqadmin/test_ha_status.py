"""haStatus: what a master of 5.x prints of its slaves, and a slave of itself (HAStatusSubCommand#printStatus)."""

from __future__ import annotations

from importer.mqadmin.mqadmin_texts import Read

LIST = (
    "#Cluster Name #Broker Name #BID #Addr #Version #InTPS(LOAD) #OutTPS(LOAD) #Timer(Progress) #PCWait(ms) #Hour "
    "#SPACE #ACTIVATED\n"
    "c broker-a 0 10.5.0.1:10911 V5_0_0 0.00(0,0ms) 0.00(0,0ms) 0-0(0.0w, 0.0, 0.0) 0 1.00 0.5100 true\n"
    "c broker-a 1 10.5.0.2:10911 V5_0_0 0.00(0,0ms) 0.00(0,0ms) 0-0(0.0w, 0.0, 0.0) 0 1.00 0.4100 false\n"
)
MASTER = (
    "\n#MasterAddr\t10.5.0.1:10911\n#MasterCommitLogMaxOffset\t900\n#SlaveNum\t2\n#InSyncSlaveNum\t1\n"
    "#SlaveAddr  #SlaveAckOffset  #Diff #TransferSpeed(KB/s) #Status #TransferFromWhere\n"
    f"{'10.5.0.2:43120':<32}  {100:<16} {800:>16} {0.5:>16.2f} {'Fall Behind':>16} {120:>16}\n"
    f"{'10.5.0.3:43121':<32}  {900:<16} {0:>16} {0:>16.2f} {'OK':>16} {900:>16}\n"
)
SLAVE = (
    "\n#MasterAddr\t10.5.0.1:10912\n#CommitLogMaxOffset\t100\n#TransferSpeed(KB/s)\t0.00\n"
    "#LastReadTime\t2022-11-23 02:00:00,000\n#LastWriteTime\t2022-11-23 02:00:00,000\n#MasterFlushOffset\t900\n"
)


def test_a_master_prints_its_slaves():
    found = Read(f"$ mqadmin clusterList\n{LIST}\n$ mqadmin haStatus -b 10.5.0.1:10911\n{MASTER}")
    [status] = [record for stem, record in found.records if stem == "ha_status"]
    assert (status["broker_name"], status["broker_id"], status["is_master"]) == ("broker-a", 0, True)
    assert (status["master_end"], status["in_sync_slaves"]) == (900, 1)
    assert status["slaves"] == [("10.5.0.2:43120", 100, 800, False, 512, 120), ("10.5.0.3:43121", 900, 0, True, 0, 900)]


def test_a_slave_prints_itself():
    found = Read(f"$ mqadmin clusterList\n{LIST}\n$ mqadmin haStatus -b 10.5.0.2:10911\n{SLAVE}")
    [status] = [record for stem, record in found.records if stem == "ha_status"]
    assert (status["broker_id"], status["is_master"], status["log_end"]) == (1, False, 100)
    assert (status["master_addr"], status["master_flushed_offset"]) == ("10.5.0.1:10912", 900)


def test_an_address_that_nothing_names_is_refused():
    found = Read(f"$ mqadmin haStatus -b 10.5.0.1:10911\n{MASTER}")
    assert found.refused == ["nothing shows which broker is at 10.5.0.1:10911; add clusterList's output"]


def test_the_set_of_a_controller_is_no_ha_status():
    printed = "\n#brokerName\tbroker-a\n#MasterBrokerId\t1\n#MasterAddr\t10.5.0.1:10911\n#MasterEpoch\t1\n"
    found = Read(f"$ mqadmin getSyncStateSet -a 10.5.0.9:9878 -b broker-a\n{printed}")
    assert found.records == []
    [why] = found.refused
    assert "a replica under NotInSyncReplica cannot be elected" in why
