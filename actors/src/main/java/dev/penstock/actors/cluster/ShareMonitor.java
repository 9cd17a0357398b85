package dev.penstock.actors.cluster;

import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import java.util.function.Consumer;

/**
 * What becomes of the nodes that have shares of a run, and of their hosts' media drivers. Its
 * keeper's thread only.
 */
final class ShareMonitor {
    private final ManagedRun kept;
    private final RankSeating seating;
    private final RunTakeover adoption;
    private final Runnable supervise;
    private final Consumer<String> fail;

    /**
     * @param supervise has a supervisor begin
     * @param fail ends a run that none supervises yet
     */
    ShareMonitor(
            ManagedRun kept,
            RankSeating seating,
            RunTakeover adoption,
            Runnable supervise,
            Consumer<String> fail) {
        this.kept = kept;
        this.seating = seating;
        this.adoption = adoption;
        this.supervise = supervise;
        this.fail = fail;
    }

    void onReport(ClusterNode.Report report) {
        if (report instanceof ClusterNode.ShareKept share) {
            adoption.onShareKept(share);
        } else if (kept.shares().isAt(report.node())) {
            onReportOfShare(report);
        }
    }

    private void onReportOfShare(ClusterNode.Report report) {
        RunShares shares = kept.shares();
        switch (report) {
            case ClusterNode.ShareKept _ -> {} // above
            case ClusterNode.RunOpened opened -> {
                shares.opened(opened);
                if (kept.is(RunState.OPENING) && shares.opening().isEmpty()) {
                    supervise.run();
                }
            }
            case ClusterNode.RunRefused refused -> onRefused(refused);
            case ClusterNode.DriverStarted(String node, String driver) ->
                    shares.driverStarted(node, driver)
                            .ifPresent(moved -> linkRestarted(moved.former(), moved.directory()));
            case ClusterNode.DriverDied(String node, String how) -> {
                if (!kept.isSupervised()) {
                    fail.accept(
                            "the media driver of node %s died: %s"
                                    .formatted(shares.name(node), how));
                } else if (shares.hasDriver(node)) {
                    shares.driverDied(node);
                    kept.tellSupervisor(new PipelineSupervisor.LinkDied(how));
                }
            }
        }
    }

    void onNodeLost(NodeOffer node, String how) {
        RunShares shares = kept.shares();
        String address = node.address();
        seating.avoidNoMore(address);
        if (!shares.isAt(address)) {
            return;
        }
        if (kept.isSupervised()) {
            onShareLost(node, how);
        } else if (adoption.isAsking()) {
            shares.lost(address);
        } else {
            shares.close();
            kept.enter(RunState.WAITING, "");
            kept.tellPeople("node %s is gone: %s".formatted(node.text(), how));
            kept.wantRoom(kept.wish());
        }
    }

    private void onShareLost(NodeOffer node, String how) {
        RunShares shares = kept.shares();
        boolean hadDriver = shares.hasDriver(node.address());
        seating.forget(node.address());
        String process = NodeInfo.process(node.name(), node.pid());
        boolean othersUsedIt = shares.isOn(node.host()); // else nobody misses the host's driver
        kept.tellSupervisor(
                new PipelineSupervisor.NodeDied(process, hadDriver && othersUsedIt, how));
        if (!shares.isAnywhere()) {
            linkRestarted("", ""); // the next node starts a driver before it hosts
        }
    }

    private void onRefused(ClusterNode.RunRefused refused) {
        RunShares shares = kept.shares();
        String address = refused.node();
        String text =
                "node %s cannot take part: %s".formatted(shares.name(address), refused.reason());
        if (!kept.isSupervised()) {
            fail.accept(text);
            return;
        }
        kept.tellPeople(text);
        seating.avoid(address);
        boolean hadDriver = shares.hasDriver(address);
        seating.forget(address);
        if (hadDriver) {
            restartLink();
        }
    }

    /** Has drivers started where they are missing. */
    void restartLink() {
        if (!kept.shares().restartDrivers()) {
            linkRestarted("", ""); // nobody needs one
        }
    }

    private void linkRestarted(String former, String directory) {
        kept.tellSupervisor(new PipelineSupervisor.LinkRestarted(former, directory));
    }
}
