package dev.penstock.actors.cluster;

import akka.actor.typed.ActorRef;
import dev.penstock.actors.supervisor.PipelineSupervisor;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One run of a cluster, for all that keep it: where it stands, where its ranks are, who supervises
 * it and who is told of it. Its keeper's thread only.
 */
final class ManagedRun {
    private final ClusterRun made;
    private final RunShares shares;
    private final ActorRef<RunManager.Command> keeper;
    private final Consumer<ClusterRuns.KeeperSays> cluster;
    private final Followers followers = new Followers();
    private final long submittedNanos;

    private @Nullable ActorRef<PipelineSupervisor.Command> supervisor;
    private RunState state = RunState.WAITING;
    private String detail = "";
    private long step;
    private long stateSinceNanos;

    /**
     * @param cluster told where the run stands and what it wants
     * @param step done before
     */
    ManagedRun(
            ClusterRun made,
            RunShares shares,
            ActorRef<RunManager.Command> keeper,
            Consumer<ClusterRuns.KeeperSays> cluster,
            long submittedNanos,
            long step) {
        this.made = made;
        this.shares = shares;
        this.keeper = keeper;
        this.cluster = cluster;
        this.submittedNanos = submittedNanos;
        this.step = step;
    }

    ClusterRun made() {
        return made;
    }

    RunShares shares() {
        return shares;
    }

    Followers followers() {
        return followers;
    }

    // ---- where it stands --------------------------------------------------------------------

    void enter(RunState next, String why) {
        stateSinceNanos = next == state ? stateSinceNanos : System.nanoTime();
        state = next;
        detail = why;
        cluster.accept(
                new ClusterRuns.Stands(
                        new RunStanding(
                                made.name(),
                                state,
                                step,
                                made.plan().steps().last(),
                                shares.nodes(),
                                age().toMillis(),
                                made.directory().toString(),
                                detail),
                        keeper));
    }

    /** The same state, with other words. */
    void say(String why) {
        enter(state, why);
    }

    void enterAfter(long newStep, RunState next, String why) {
        step = newStep;
        enter(next, why);
    }

    void reached(long newStep) {
        enterAfter(newStep, state, detail);
    }

    RunState state() {
        return state;
    }

    boolean is(RunState asked) {
        return state == asked;
    }

    boolean hasEnded() {
        return state.hasEnded();
    }

    String detail() {
        return detail;
    }

    long step() {
        return step;
    }

    Duration age() {
        return Duration.ofNanos(System.nanoTime() - submittedNanos);
    }

    Duration timeInState() {
        return Duration.ofNanos(System.nanoTime() - stateSinceNanos);
    }

    // ---- whom it talks to -------------------------------------------------------------------

    void tellPeople(String line) {
        followers.tell(new RunNews.Told(line));
    }

    void supervisedBy(ActorRef<PipelineSupervisor.Command> one) {
        supervisor = one;
    }

    void supervisedByNobody() {
        supervisor = null;
    }

    boolean isSupervised() {
        return supervisor != null;
    }

    /** Nothing, if there is none. */
    void tellSupervisor(PipelineSupervisor.Command command) {
        if (supervisor != null) {
            supervisor.tell(command);
        }
    }

    /** For all its ranks, anywhere. */
    NodeInventory.Wish wish() {
        List<Integer> together = Collections.nCopies(made.plan().ranks(), 0);
        return new NodeInventory.Wish(
                made.plannedBytes(together),
                made::plannedBytes,
                made.ranksPerNode(),
                made.crossesHosts());
    }

    /** Answered by {@link RunManager.RoomAnswered}. */
    void wantRoom(NodeInventory.Wish wish) {
        cluster.accept(new ClusterRuns.WantsRoom(made.name(), wish, keeper));
    }

    /** Answered by {@link RunManager.Crowded}. */
    void wantBalance(ActorRef<ClusterRuns.RebalanceAnswer> replyTo) {
        cluster.accept(new ClusterRuns.WantsBalance(made.name(), wish(), replyTo, keeper));
    }

    /** Ranks take room at these addresses, if all of it is there. */
    void wantSeats(Map<Integer, String> addresses, CompletableFuture<Boolean> answer) {
        cluster.accept(new ClusterRuns.WantsSeats(made.name(), wish(), addresses, answer));
    }

    /** A rank took room that nobody had asked for. */
    void seated(int rank, NodeInventory.Entry entry) {
        cluster.accept(new ClusterRuns.Seated(made.name(), wish(), rank, entry.offer().address()));
    }
}
