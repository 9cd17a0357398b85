package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import akka.actor.typed.javadsl.TimerScheduler;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;

/**
 * How a run is taken up whose keeper is gone: nodes keep their shares for a while, so whoever has
 * one is found, and the run goes on there. Its keeper's thread only.
 */
final class RunTakeover {
    /** By then, a seed knows all members of its cluster, and they have said what they have. */
    private static final Duration SETTLING = Duration.ofSeconds(5);

    /** For what the ranks of the shares say of themselves. */
    private static final Duration INTRODUCTIONS = Duration.ofSeconds(2);

    private final ManagedRun kept;
    private final ActorRef<ClusterNode.Report> reports;
    private final TimerScheduler<RunManager.Command> timers;
    private final Runnable supervise;

    /** Whether nodes are still asked for their shares. */
    private boolean asking;

    private final Map<String, NodeInventory.Entry> asked = new HashMap<>();

    /** Drivers that were started again in an earlier owner's time, by the directory before. */
    private final Map<String, String> movedDrivers = new HashMap<>();

    /**
     * @param supervise has a supervisor begin
     */
    RunTakeover(
            ManagedRun kept,
            ActorRef<ClusterNode.Report> reports,
            TimerScheduler<RunManager.Command> timers,
            Runnable supervise) {
        this.kept = kept;
        this.reports = reports;
        this.timers = timers;
        this.supervise = supervise;
    }

    void begin(Collection<NodeInventory.Entry> nodes) {
        asking = true;
        kept.enter(RunState.RECOVERING, "its seed was gone: looks for its ranks");
        kept.tellPeople("the run's seed was gone: another looks for its ranks");
        timers.startSingleTimer(new RunManager.AllAsked(), SETTLING);
        nodes.forEach(this::ask);
    }

    boolean isAsking() {
        return asking;
    }

    /** A node that there is may have a share. */
    void ask(NodeInventory.Entry node) {
        if (asking) {
            asked.put(node.offer().address(), node);
            node.node().tell(new ClusterNode.AdoptRun(kept.made().plan().runId(), reports));
        }
    }

    void onShareKept(ClusterNode.ShareKept share) {
        NodeInventory.Entry entry = asked.get(share.node());
        if (entry == null) {
            return;
        }
        kept.shares().adopt(entry, share);
        share.ranks().forEach(rank -> kept.seated(rank, entry));
        if (!share.firstDriver().equals(share.driver())) {
            movedDrivers.put(share.firstDriver(), share.driver());
        }
        if (!kept.isSupervised() && kept.shares().homes().size() == kept.made().plan().ranks()) {
            superviseAdopted();
        }
    }

    private void superviseAdopted() {
        supervise.run();
        kept.enter(RunState.RECOVERING, "its seed was gone: its ranks are taken up");
        movedDrivers.forEach(
                (former, directory) ->
                        kept.tellSupervisor(
                                new PipelineSupervisor.LinkRestarted(former, directory)));
        if (kept.shares().lacksDriver()) {
            kept.tellSupervisor(new PipelineSupervisor.LinkDied("its node is gone"));
        }
    }

    /** No more shares are looked for; what nobody has by now is nowhere. */
    void onAllAsked() {
        asking = false;
        if (kept.isSupervised()) {
            kept.tellSupervisor(new PipelineSupervisor.AllAsked());
        } else {
            superviseAdopted();
            timers.startSingleTimer(new RunManager.AllAsked(), INTRODUCTIONS);
        }
    }
}
