package dev.penstock.actors.cluster;

import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.spi.ProcessSupply;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StepTokens;
import dev.penstock.actors.supervisor.RunBeginning;
import dev.penstock.actors.supervisor.SupervisorServices;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * What a seed's books cost in a run of as many nodes as ranks: the real {@link ClusterCoordinator},
 * whose nodes are imagined, each on a host of its own with room for one rank and a half, and answer
 * at once. It stands in the coordinator's package because nobody else needs to see that.
 */
public final class SeedBooks {
    private static final long RANK_BYTES = 2L << 30;
    private static final String RUN = "many";

    /**
     * Milliseconds of the seed's thread.
     *
     * @param joining all nodes but the last come, each too few for the run
     * @param placing the last one comes, all shares are opened and all ranks are seen
     * @param spare one more node comes
     * @param recovery a node dies, and its rank goes to the spare one
     * @param takeOver another seed finds all shares
     * @param asked how often the application was asked what all ranks hold, which costs it time
     */
    public record Figures(
            double joining,
            double placing,
            double spare,
            double recovery,
            double takeOver,
            int asked) {}

    private final RunPlan plan;
    private final int ranks;
    private final Map<String, NodeOffer> nodes = new HashMap<>();
    private final Set<Long> members = new HashSet<>();
    private final Map<Integer, String> placed = new HashMap<>();
    private final Deque<Runnable> answers = new ArrayDeque<>();
    private ClusterCoordinator coordinator = new ClusterCoordinator(Set.of());
    private boolean supervised;
    private int asked;
    private long now = 1;
    private long spent;

    private SeedBooks(RunPlan plan) {
        this.plan = plan;
        this.ranks = plan.ranks();
    }

    /** Has a run placed, moved and taken up. */
    public static Figures measure(RunPlan plan) {
        return new SeedBooks(plan).measured();
    }

    private Figures measured() {
        spend(() -> coordinator.keep(new Imagined(RunBeginning.FIRST), Optional.empty(), now));
        for (int node = 0; node < ranks - 1; node++) {
            comes(node);
        }
        double joining = took();
        comes(ranks - 1);
        expect(placed.size() == ranks);
        double placing = took();
        comes(ranks);
        double spare = took();
        NodeOffer dead = offer(ranks / 2);
        int rank = rankAt(dead);
        members.remove(dead.uid());
        nodes.remove(dead.address());
        spend(() -> coordinator.onNodeGone(dead.process(), "it left the cluster", now));
        spend(() -> coordinator.onStartRank(RUN, rank, now));
        spend(() -> coordinator.onGathered(RUN, now));
        spend(() -> coordinator.onRecovered(RUN, 1, now));
        expect(offer(ranks).process().equals(placed.get(rank)));
        double recovery = took();
        takenUp();
        return new Figures(joining, placing, spare, recovery, took(), asked);
    }

    private void takenUp() {
        List<JournalRecord> journal = new ArrayList<>();
        journal.add(new JournalRecord.Began(plan.runId(), plan.hash(), ranks, 1, 0));
        placed.forEach((rank, process) -> journal.add(new JournalRecord.Placed(rank, process)));
        var known = JournalledRun.of(journal).orElseThrow();
        coordinator = new ClusterCoordinator(members);
        supervised = false;
        coordinator.onLooking(now);
        var run = new Imagined(new RunBeginning.TakenUp(known, true));
        spend(() -> coordinator.keep(run, Optional.empty(), now));
        spend(() -> coordinator.onLooked(Set.of(), now));
        List.copyOf(nodes.values()).forEach(node -> spend(() -> coordinator.onNode(node, now)));
        expect(supervised);
        placed.forEach(
                (rank, process) -> spend(() -> coordinator.onPlaced(RUN, rank, process, now)));
        spend(() -> coordinator.onRecovered(RUN, 1, now));
    }

    private void comes(int number) {
        NodeOffer offer = offer(number);
        nodes.put(offer.address(), offer);
        members.add(offer.uid());
        spend(() -> coordinator.onNode(offer, now));
    }

    private static NodeOffer offer(int number) {
        String name = "worker-%04d".formatted(number);
        return new NodeOffer(
                name,
                "akka://penstock@%s.cluster.example:2552".formatted(name),
                name + ".cluster.example",
                1,
                number,
                "1",
                List.of("cpu"),
                RANK_BYTES * 3 / 2,
                1);
    }

    private int rankAt(NodeOffer node) {
        return IntStream.range(0, ranks)
                .filter(rank -> node.process().equals(placed.get(rank)))
                .findFirst()
                .orElseThrow();
    }

    private static void expect(boolean met) {
        if (!met) {
            throw new IllegalStateException("the run is not where it should be");
        }
    }

    private double took() {
        double millis = spent / 1e6;
        spent = 0;
        return millis;
    }

    /** The seed is told something, and its nodes answer until there is nothing left to say. */
    private void spend(Runnable told) {
        answers.add(told);
        while (!answers.isEmpty()) {
            long start = System.nanoTime();
            answers.remove().run();
            List<ClusterEffect> effects = coordinator.drain();
            spent += System.nanoTime() - start;
            effects.forEach(this::perform);
        }
    }

    private void perform(ClusterEffect effect) {
        switch (effect) {
            case ClusterEffect.OpenShare open ->
                    hear(
                            new ClusterNode.RunOpened(
                                    open.node(),
                                    open.number(),
                                    open.startsDriver() ? driver(open.node()) : ""));
            case ClusterEffect.HostRanks host -> {
                hear(new ClusterNode.RanksHosted(host.node(), host.number()));
                String process = Objects.requireNonNull(nodes.get(host.node())).process();
                for (int rank : host.ranks()) {
                    placed.put(rank, process);
                    answers.add(() -> coordinator.onPlaced(RUN, rank, process, now));
                }
            }
            case ClusterEffect.AskForShare(String _, String node) -> hear(kept(node));
            case ClusterEffect.Supervise _ -> supervised = true;
            case ClusterEffect.End end -> throw new IllegalStateException("the run ended: " + end);
            case ClusterEffect.StartDriver _,
                    ClusterEffect.CloseShare _,
                    ClusterEffect.Gather _,
                    ClusterEffect.TellSupervisor _,
                    ClusterEffect.TellPeople _ -> {}
        }
    }

    private void hear(ClusterNode.Report report) {
        answers.add(() -> coordinator.onReport(RUN, report, now));
    }

    private ClusterNode.Report kept(String address) {
        String process = Objects.requireNonNull(nodes.get(address)).process();
        List<Integer> here =
                placed.entrySet().stream()
                        .filter(rank -> rank.getValue().equals(process))
                        .map(Map.Entry::getKey)
                        .toList();
        return new ClusterNode.ShareKept(
                address, here, List.of(driver(address)), driver(address), true, Optional.empty());
    }

    private static String driver(String address) {
        return "/dev/shm/driver of " + address;
    }

    /** A run without files. */
    private final class Imagined implements ClusterRun {
        private final RunBeginning beginning;

        Imagined(RunBeginning beginning) {
            this.beginning = beginning;
        }

        @Override
        public String name() {
            return RUN;
        }

        @Override
        public Path directory() {
            return Path.of("/runs", RUN);
        }

        @Override
        public RunPlan plan() {
            return plan;
        }

        @Override
        public List<Long> plannedBytes(List<Integer> homes) {
            asked++;
            return homes.stream().map(_ -> RANK_BYTES).toList();
        }

        @Override
        public Optional<Integer> ranksPerNode() {
            return Optional.empty();
        }

        @Override
        public List<String> banner() {
            return List.of();
        }

        @Override
        public StepTokens tokens() {
            throw new UnsupportedOperationException("nobody follows it");
        }

        @Override
        public RunListener listener(RunListener next) {
            return next;
        }

        @Override
        public boolean crossesHosts() {
            return true;
        }

        @Override
        public RunBeginning beginning() {
            return beginning;
        }

        @Override
        public SupervisorServices services(ProcessSupply processes) {
            throw new UnsupportedOperationException("nobody supervises it");
        }

        @Override
        public String finish(RunOutcome outcome, Duration took) {
            return "";
        }

        @Override
        public void close() {}
    }
}
