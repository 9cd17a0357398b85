package dev.penstock.actors.exploration;

import dev.penstock.actors.collective.CollectiveForm;
import dev.penstock.actors.fault.RecoveryPolicy;
import dev.penstock.actors.journal.JournalRecord;
import dev.penstock.actors.journal.JournalledRun;
import dev.penstock.actors.node.HostedRank;
import dev.penstock.actors.node.NodeInfo;
import dev.penstock.actors.node.TestNodes;
import dev.penstock.actors.rank.RankActivity;
import dev.penstock.actors.rank.RankAssignment;
import dev.penstock.actors.rank.RankCommand;
import dev.penstock.actors.rank.RankEvent;
import dev.penstock.actors.spi.RankGrid;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.RunSteps;
import dev.penstock.actors.spi.StepKind;
import dev.penstock.actors.spi.Timeouts;
import dev.penstock.actors.supervisor.Effect;
import dev.penstock.actors.supervisor.Publication;
import dev.penstock.actors.supervisor.RunCoordinator;
import dev.penstock.actors.supervisor.TestCoordinators;
import dev.penstock.schedules.generate.OneForwardOneBackward;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Schedule;
import dev.penstock.schedules.lower.Lowering;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * A run of two steps with a rank in each of three processes, its journal, its disk, everything that
 * is on its way, and the supervisors that there are: the first, and one that took the run up while
 * the first may live. Words of one to another do not overtake one another; all else may happen in
 * any order.
 */
final class ModelWorld {
    static final int RANKS = 3;
    static final int STEPS = 2;

    private static final long TICK = 750_000_000L;
    private static final int TICKS_TO_ASK_AGAIN = 3;
    private static final int PATIENCE = 400;
    private static final int LAST_EPOCH = 4;

    private static final RunPlan PLAN = plan();
    private static final RunListener NOBODY = new RunListener() {};

    /** A word to a process, from a supervisor. */
    private sealed interface Order {
        record Ask(int epoch) implements Order {}

        record Host(RankAssignment birth) implements Order {}

        record Tell(int birth, RankCommand command) implements Order {}

        record Dismiss(HostedRank stray, RankCommand command) implements Order {}
    }

    /** A word to a supervisor, from a process. */
    private sealed interface Word {
        record Introduction(int epoch, List<HostedRank> hosted) implements Word {}

        record Hosted(int rank, int birth) implements Word {}

        record Event(RankEvent event) implements Word {}
    }

    /** Where a supervisor tells a rank what to do. */
    private record Stage(int process, int birth) {}

    private static final class Supervisor {
        final RunCoordinator coordinator;
        final Map<Integer, Stage> stages = new TreeMap<>();
        final Set<Integer> known = new TreeSet<>();

        /** Processes of whose death it has not heard. */
        final List<Integer> deaths = new ArrayList<>();

        final Set<Long> heardDead = new TreeSet<>();
        final List<Publication> published = new ArrayList<>();
        boolean lives = true;

        Supervisor(RunCoordinator coordinator) {
            this.coordinator = coordinator;
        }
    }

    private static final class Process {
        final NodeInfo info;
        boolean lives = true;

        /** Of the supervisor whom its node follows. */
        int epoch;

        @Nullable ModelRank rank;
        final List<List<Order>> orders = new ArrayList<>();
        final List<List<Word>> words = new ArrayList<>();

        Process(NodeInfo info, int supervisors) {
            this.info = info;
            for (int i = 0; i < supervisors; i++) {
                hearsOfASupervisor();
            }
        }

        void hearsOfASupervisor() {
            orders.add(new ArrayList<>());
            words.add(new ArrayList<>());
        }
    }

    /** What may go wrong from here on. */
    record Faults(int losses, int deaths, int takeOvers, int lostRecords) {}

    /** Something that may happen now. */
    interface Move {
        void happen(ModelWorld world);
    }

    /**
     * @param what it is called in the story of a violation
     * @param of what that names; made to text only then
     */
    record Choice(Move move, String what, Object... of) {
        String name() {
            return what.formatted(of);
        }
    }

    private final List<Supervisor> supervisors = new ArrayList<>();
    private final List<Process> processes = new ArrayList<>();
    private final List<Integer> toStart = new ArrayList<>();
    private List<JournalRecord> journal = List.of();
    private Faults faults;
    private long now;
    private boolean anyRankWasLost;

    /** By epoch and pass, who has begun it. */
    private final Map<List<Long>, Set<Integer>> begun = new HashMap<>();

    /** By epoch, the supervisor in whose name ranks opened links. */
    private final Map<Integer, Integer> owners = new TreeMap<>();

    /** By step and epoch, what ranks have written of it. */
    private final Map<List<Long>, Map<Integer, List<ModelRank.Update>>> parts = new HashMap<>();

    private final Map<Long, List<ModelRank.Update>> checkpoints = new TreeMap<>();
    private @Nullable RunOutcome outcome;
    private @Nullable String violation;

    ModelWorld(Faults faults) {
        this.faults = faults;
        for (int rank = 0; rank < RANKS; rank++) {
            processes.add(new Process(TestNodes.of("p" + rank, 100 + rank, rank), 0));
        }
        var first = new Supervisor(TestCoordinators.begin(PLAN, RecoveryPolicy.DEFAULT, 0));
        enter(first);
        perform(0, first.coordinator.onTick(0)); // with what it said when it began
    }

    private static RunPlan plan() {
        PipelineShape shape = PipelineShape.of(RANKS, RANKS);
        Schedule order = OneForwardOneBackward.schedule(shape);
        return new RunPlan(
                "run",
                "hash",
                Lowering.lower(order),
                Lowering.lowerForwardOnly(order),
                RankGrid.pipeline(RANKS),
                Map.of(),
                new RunSteps(0, STEPS, 1, 0, 0, 1),
                Timeouts.DEFAULT,
                false,
                true,
                CollectiveForm.NEVER);
    }

    int opsOf(int rank) {
        return PLAN.training().program(rank).ops().size();
    }

    Optional<String> violation() {
        return Optional.ofNullable(violation);
    }

    void require(boolean holds, String what, @Nullable Object... of) {
        if (!holds && violation == null) {
            violation = what.formatted(of);
        }
    }

    long number() {
        return ObjectGraph.numberOf(this, now);
    }

    /** Whether nothing that follows is of interest. */
    boolean isOver() {
        return outcome != null
                || supervisors.stream().anyMatch(each -> each.coordinator.epoch() > LAST_EPOCH);
    }

    // ---- what may happen ------------------------------------------------------------------------

    /** What may happen next. */
    List<Choice> choices() {
        List<Choice> choices = steps();
        addFaults(choices);
        return choices;
    }

    /** What may go wrong next. */
    List<Choice> mishaps() {
        List<Choice> mishaps = new ArrayList<>();
        addFaults(mishaps);
        return mishaps;
    }

    /** What may happen next if nothing goes wrong. */
    List<Choice> steps() {
        List<Choice> choices = new ArrayList<>();
        boolean calm = faults.losses == 0 && faults.deaths == 0 && faults.takeOvers == 0;
        for (int p = 0; p < processes.size(); p++) {
            int before = choices.size();
            addOfProcess(p, choices);
            if (calm && choices.size() > before && isAlone(p)) {
                return new ArrayList<>(choices.subList(before, choices.size()));
            }
        }
        for (int s = 0; s < supervisors.size(); s++) {
            if (supervisors.get(s).lives) {
                addOfSupervisor(s, choices);
            }
        }
        for (int i = 0; i < toStart.size(); i++) {
            int start = i;
            choices.add(
                    new Choice(
                            world -> world.start(start),
                            "a process for rank %d starts",
                            toStart.get(i)));
        }
        if (choices.isEmpty()) {
            choices.add(new Choice(ModelWorld::timePasses, "time passes"));
        }
        return choices;
    }

    /**
     * Whether what it does next concerns nobody else, nor does anybody else change it: then it may
     * as well do it first.
     */
    private boolean isAlone(int p) {
        Process process = processes.get(p);
        ModelRank rank = process.rank;
        boolean mayYetFinish = rank != null && rank.trains() && !rank.mayFinish(this);
        int active = 0;
        for (int s = 0; s < supervisors.size(); s++) {
            active += supervisors.get(s).lives && !isInert(s) ? 1 : 0;
        }
        return !mayYetFinish
                && active <= 1
                && process.orders.stream().filter(orders -> !orders.isEmpty()).count() <= 1;
    }

    /** Whether it hears nothing and does nothing more before time passes. */
    private boolean isInert(int s) {
        Supervisor supervisor = supervisors.get(s);
        return toStart.isEmpty()
                && supervisor.deaths.isEmpty()
                && supervisor.published.isEmpty()
                && processes.stream()
                        .allMatch(
                                each ->
                                        each.orders.get(s).isEmpty()
                                                && each.words.get(s).isEmpty()
                                                && (each.rank == null
                                                        || each.rank.supervisor() != s));
    }

    private void addOfProcess(int p, List<Choice> choices) {
        Process process = processes.get(p);
        if (!process.lives) {
            return;
        }
        for (int s = 0; s < supervisors.size(); s++) {
            List<Order> orders = process.orders.get(s);
            if (!orders.isEmpty()) {
                int from = s;
                choices.add(
                        new Choice(
                                world -> world.takeOrder(p, from),
                                "process %d takes %s of %s",
                                p,
                                orders.getFirst(),
                                name(s)));
            }
        }
        ModelRank rank = process.rank;
        if (rank != null && rank.mayFinish(this)) {
            choices.add(new Choice(world -> world.ends(p), "rank %d ends its pass", rank.rank));
        }
    }

    private static char name(int supervisor) {
        return "AB".charAt(supervisor);
    }

    private void addOfSupervisor(int s, List<Choice> choices) {
        Supervisor supervisor = supervisors.get(s);
        for (int p = 0; p < processes.size(); p++) {
            int from = p;
            List<Word> words = processes.get(p).words.get(s);
            if (!words.isEmpty()) {
                choices.add(
                        new Choice(
                                world -> world.takeWord(s, from),
                                "%s hears %s of process %d",
                                name(s),
                                words.getFirst(),
                                p));
            }
        }
        for (int i = 0; i < supervisor.deaths.size(); i++) {
            int which = i;
            choices.add(
                    new Choice(
                            world -> world.hearDeath(s, which),
                            "%s hears that process %d died",
                            name(s),
                            supervisor.deaths.get(i)));
        }
        if (!supervisor.published.isEmpty()) {
            choices.add(
                    new Choice(
                            world -> world.hearPublished(s),
                            "%s hears that a checkpoint is whole",
                            name(s)));
        }
    }

    private void addFaults(List<Choice> choices) {
        for (int p = 0; p < processes.size(); p++) {
            for (int s = 0; s < supervisors.size() && faults.losses > 0; s++) {
                addLosses(p, s, choices);
            }
            int who = p;
            if (faults.deaths > 0 && !begun.isEmpty() && processes.get(p).lives) {
                choices.add(new Choice(world -> world.isKilled(who), "process %d dies", p));
            }
        }
        for (int lost = 0; faults.takeOvers > 0 && lost <= faults.lostRecords; lost++) {
            int records = lost;
            if (lost < journal.size() && ending(lost).isEmpty()) {
                choices.add(
                        new Choice(
                                world -> world.takeUp(records),
                                "B takes the run up, of whose journal %d records are lost",
                                lost));
            }
        }
    }

    private Optional<JournalRecord> ending(int lost) {
        return JournalledRun.of(journal.subList(0, journal.size() - lost))
                .flatMap(JournalledRun::ending);
    }

    private void addLosses(int p, int s, List<Choice> choices) {
        Process process = processes.get(p);
        List<Order> orders = process.orders.get(s);
        List<Word> words = process.words.get(s);
        if (process.lives && !orders.isEmpty()) {
            choices.add(
                    new Choice(
                            world -> world.loses(world.processes.get(p).orders.get(s)),
                            "%s to process %d is lost",
                            orders.getFirst(),
                            p));
        }
        if (supervisors.get(s).lives && !words.isEmpty()) {
            choices.add(
                    new Choice(
                            world -> world.loses(world.processes.get(p).words.get(s)),
                            "%s of process %d is lost",
                            words.getFirst(),
                            p));
        }
    }

    private void loses(List<?> messages) {
        messages.removeFirst();
        faults = new Faults(faults.losses - 1, faults.deaths, faults.takeOvers, faults.lostRecords);
    }

    private void isKilled(int p) {
        faults = new Faults(faults.losses, faults.deaths - 1, faults.takeOvers, faults.lostRecords);
        dies(p);
    }

    // ---- processes ------------------------------------------------------------------------------

    private void takeOrder(int p, int from) {
        Process process = processes.get(p);
        switch (process.orders.get(from).removeFirst()) {
            case Order.Ask(int epoch) -> {
                process.epoch = Math.max(process.epoch, epoch);
                introduces(p, from);
            }
            case Order.Host(RankAssignment birth) -> host(p, birth, from);
            case Order.Tell(int birth, RankCommand command) -> {
                ModelRank rank = process.rank;
                if (rank != null && rank.birth == birth) {
                    boolean fenced =
                            command instanceof RankCommand.Fence && command.epoch() >= rank.epoch();
                    order(process, rank, command, from);
                    if (fenced) {
                        dies(p);
                    }
                }
            }
            case Order.Dismiss(HostedRank stray, RankCommand command) -> {
                ModelRank rank = process.rank;
                if (rank != null && hosted(rank).equals(stray)) {
                    order(process, rank, command, from);
                }
            }
        }
    }

    private void order(Process process, ModelRank rank, RankCommand command, int from) {
        if (!rank.take(this, command, from)) {
            process.rank = null;
        }
    }

    private static HostedRank hosted(ModelRank rank) {
        return new HostedRank(rank.rank, rank.birth);
    }

    private void introduces(int p, int to) {
        Process process = processes.get(p);
        List<HostedRank> hosted = process.rank == null ? List.of() : List.of(hosted(process.rank));
        process.words.get(to).add(new Word.Introduction(process.epoch, hosted));
    }

    private void host(int p, RankAssignment birth, int from) {
        Process process = processes.get(p);
        if (birth.epoch() < process.epoch) {
            return;
        }
        ModelRank there = process.rank;
        process.words.get(from).add(new Word.Hosted(birth.rank(), birth.epoch()));
        if (there == null || there.birth != birth.epoch()) {
            boolean isFormer = there == null || there.birth < birth.epoch();
            require(isFormer, "%s and one before it in one process", there);
            process.rank = new ModelRank(this, p, birth, from);
        }
    }

    private void ends(int p) {
        ModelRank rank = processes.get(p).rank;
        if (rank != null) {
            rank.finish(this);
        }
    }

    private void dies(int p) {
        Process process = processes.get(p);
        process.lives = false;
        anyRankWasLost = true;
        process.rank = null;
        process.orders.forEach(List::clear);
        supervisors.stream().filter(each -> each.lives).forEach(each -> each.deaths.add(p));
    }

    private void start(int which) {
        int rank = toStart.remove(which);
        int p = processes.size();
        processes.add(new Process(TestNodes.of("p" + p, 100 + p, rank), supervisors.size()));
        for (int s = 0; s < supervisors.size(); s++) {
            ask(s, p);
        }
    }

    private void ask(int s, int p) {
        Supervisor supervisor = supervisors.get(s);
        List<Order> orders = processes.get(p).orders.get(s);
        if (supervisor.lives && processes.get(p).lives) {
            orders.add(new Order.Ask(supervisor.coordinator.epoch()));
        }
    }

    // ---- what ranks do --------------------------------------------------------------------------

    void says(int process, int to, RankEvent event) {
        processes.get(process).words.get(to).add(new Word.Event(event));
    }

    void opensLinks(ModelRank rank) {
        Integer before = owners.putIfAbsent(rank.epoch(), rank.supervisor());
        require(
                before == null || before == rank.supervisor(),
                "ranks opened links in epoch %d for both supervisors",
                rank.epoch());
    }

    void begins(ModelRank rank, long pass) {
        begun.computeIfAbsent(List.of((long) rank.epoch(), pass), _ -> new TreeSet<>())
                .add(rank.rank);
        for (Process process : processes) {
            ModelRank other = process.rank;
            if (other != null && other.epoch() == rank.epoch() && hasBegun(other, pass)) {
                require(other.applied().equals(rank.applied()), "%s trains with %s", rank, other);
            }
        }
    }

    private boolean hasBegun(ModelRank rank, long pass) {
        return begun.getOrDefault(List.of((long) rank.epoch(), pass), Set.of()).contains(rank.rank);
    }

    boolean haveAllBegun(int epoch, long pass) {
        return begun.getOrDefault(List.of((long) epoch, pass), Set.of()).size() == RANKS;
    }

    void writes(ModelRank rank, long step) {
        require(rank.applied().size() == step, "%s saves step %d", rank, step);
        parts.computeIfAbsent(List.of(step, (long) rank.epoch()), _ -> new TreeMap<>())
                .put(rank.rank, rank.applied());
    }

    List<ModelRank.Update> checkpoint(long step) {
        List<ModelRank.Update> state = checkpoints.get(step);
        require(state != null, "there is no checkpoint of step %d", step);
        return state == null ? List.of() : state;
    }

    // ---- supervisors ----------------------------------------------------------------------------

    private void enter(Supervisor supervisor) {
        supervisors.add(supervisor);
        processes.forEach(Process::hearsOfASupervisor);
        for (int p = 0; p < processes.size(); p++) {
            ask(supervisors.size() - 1, p);
        }
    }

    private void takeUp(int lost) {
        faults = new Faults(faults.losses, faults.deaths, faults.takeOvers - 1, 0);
        journal = List.copyOf(journal.subList(0, journal.size() - lost));
        JournalledRun run = JournalledRun.of(journal).orElseThrow();
        long newest = checkpoints.keySet().stream().max(Long::compare).orElse(JournalledRun.NONE);
        var next =
                new Supervisor(
                        TestCoordinators.takeUpNamed(
                                run.withPublished(newest), PLAN, RecoveryPolicy.DEFAULT, now));
        enter(next);
        for (int p = 0; p < processes.size(); p++) {
            if (!processes.get(p).lives) {
                next.deaths.add(p);
            }
        }
        perform(1, next.coordinator.onTick(now));
    }

    private boolean owns(int s) {
        return s == supervisors.size() - 1;
    }

    private void takeWord(int s, int p) {
        Supervisor supervisor = supervisors.get(s);
        RunCoordinator coordinator = supervisor.coordinator;
        Process process = processes.get(p);
        switch (process.words.get(s).removeFirst()) {
            case Word.Introduction(int epoch, var hosted) -> {
                if (supervisor.heardDead.contains(process.info.pid())) {
                    return; // its last words
                }
                supervisor.known.add(p);
                if (epoch > coordinator.epoch()) {
                    perform(s, coordinator.onHigherEpoch(process.info, epoch, now));
                    ask(s, p);
                    return;
                }
                if (epoch < coordinator.epoch()) {
                    ask(s, p);
                }
                List<Effect> effects = coordinator.onNode(process.info, epoch, hosted, now);
                hosted.stream()
                        .filter(each -> coordinator.has(each, process.info))
                        .forEach(
                                each ->
                                        supervisor.stages.put(
                                                each.rank(), new Stage(p, each.birthEpoch())));
                perform(s, effects);
            }
            case Word.Hosted(int rank, int birth) -> {
                supervisor.stages.merge(
                        rank,
                        new Stage(p, birth),
                        (old, young) -> young.birth() > old.birth() ? young : old);
                perform(s, coordinator.onHosted(rank, birth, now));
            }
            case Word.Event(RankEvent event) -> perform(s, coordinator.onRankEvent(event, now));
        }
    }

    private void hearDeath(int s, int which) {
        Supervisor supervisor = supervisors.get(s);
        NodeInfo info = processes.get(supervisor.deaths.remove(which)).info;
        supervisor.heardDead.add(info.pid());
        perform(s, supervisor.coordinator.onNodeDied(info.process(), false, "killed", now));
        Map<Integer, String> placed =
                JournalledRun.of(journal).map(JournalledRun::placed).orElse(Map.of());
        int rank = info.rank().orElseThrow();
        if (info.process().equals(placed.get(rank))) {
            perform(s, supervisor.coordinator.onNowhere(rank, now));
        }
    }

    private void hearPublished(int s) {
        Supervisor supervisor = supervisors.get(s);
        perform(s, supervisor.coordinator.onPublished(supervisor.published.removeFirst(), now));
    }

    private void perform(int s, List<Effect> effects) {
        Supervisor supervisor = supervisors.get(s);
        for (Effect effect : effects) {
            if (effect instanceof Effect.Journal && !owns(s)) {
                supervisor.lives = false; // its journal is another's
            }
            if (!supervisor.lives) {
                return;
            }
            perform(s, supervisor, effect);
        }
    }

    private void perform(int s, Supervisor supervisor, Effect effect) {
        switch (effect) {
            case Effect.Journal(var entries) -> write(entries);
            case Effect.HostRank(NodeInfo node, RankAssignment birth) ->
                    processes.get(numberOf(node)).orders.get(s).add(new Order.Host(birth));
            case Effect.TellRank(int rank, RankCommand command) -> {
                Stage stage = supervisor.stages.get(rank);
                require(stage != null, "rank %d is told %s and lives nowhere", rank, command);
                if (stage != null && processes.get(stage.process()).lives) {
                    processes
                            .get(stage.process())
                            .orders
                            .get(s)
                            .add(new Order.Tell(stage.birth(), command));
                }
            }
            case Effect.Dismiss(NodeInfo node, HostedRank stray, RankCommand.Stop command) ->
                    processes
                            .get(numberOf(node))
                            .orders
                            .get(s)
                            .add(new Order.Dismiss(stray, command));
            case Effect.StartProcess(Optional<Integer> rank) -> rank.ifPresent(toStart::add);
            case Effect.Publish publish -> publish(supervisor, publish);
            case Effect.Abandon(long step, int epoch) -> parts.remove(List.of(step, (long) epoch));
            case Effect.Notify(var call) -> call.accept(NOBODY);
            case Effect.Finish(RunOutcome end) -> {
                supervisor.lives = false;
                if (owns(s)) {
                    end(end);
                }
            }
            case Effect.ReadVitals _ -> {}
            case Effect.Leave _, Effect.AskRoom _, Effect.RestartLink _, Effect.FindOlder _ ->
                    throw new IllegalStateException("not in this world: " + effect);
        }
    }

    private int numberOf(NodeInfo node) {
        return (int) node.pid() - 100;
    }

    private void write(List<JournalRecord> entries) {
        for (JournalRecord entry : entries) {
            if (entry instanceof JournalRecord.RolledBack && !anyRankWasLost) {
                long commit = JournalledRun.of(journal).map(JournalledRun::applied).orElseThrow();
                boolean all =
                        processes.stream()
                                .allMatch(each -> each.rank != null && each.rank.reaches(commit));
                require(!all || commit == 0, "all reach step %d, and go back", commit);
            }
        }
        List<JournalRecord> more = new ArrayList<>(journal);
        more.addAll(entries);
        journal = List.copyOf(more);
    }

    private void publish(Supervisor supervisor, Effect.Publish publish) {
        Map<Integer, List<ModelRank.Update>> of =
                parts.getOrDefault(List.of(publish.step(), (long) publish.epoch()), Map.of());
        require(
                of.size() == RANKS && of.values().stream().distinct().count() == 1,
                "a checkpoint of step %d is made of %s",
                publish.step(),
                of);
        if (!of.isEmpty()) {
            checkpoints.put(publish.step(), of.values().iterator().next());
        }
        supervisor.published.add(
                new Publication(publish.step(), publish.bytes(), 0, Optional.empty()));
    }

    private void end(RunOutcome end) {
        outcome = end;
        require(end instanceof RunOutcome.Completed, "the run ended so: %s", end);
        List<ModelRank.Update> last = checkpoints.get((long) STEPS);
        require(last != null && last.size() == STEPS, "the last checkpoint is %s", last);
    }

    // ---- time -----------------------------------------------------------------------------------

    /** Nothing is on its way: deadlines pass until one of them has somebody do something. */
    private void timePasses() {
        for (int tick = 1; tick <= PATIENCE; tick++) {
            now += TICK;
            for (Process process : processes) {
                renewLease(process.rank, tick * TICK);
            }
            for (int s = 0; s < supervisors.size(); s++) {
                Supervisor supervisor = supervisors.get(s);
                if (supervisor.lives) {
                    perform(s, supervisor.coordinator.onTick(now));
                    if (now / TICK % TICKS_TO_ASK_AGAIN == 0) {
                        askAgain(s, supervisor);
                    }
                }
            }
            if (outcome != null || violation != null || somethingIsOnItsWay()) {
                return;
            }
        }
        require(false, "nothing has moved for %d s", PATIENCE * TICK / 1_000_000_000);
    }

    /**
     * @param stillNanos since time began to pass, and with that since a rank moved last
     */
    private void renewLease(@Nullable ModelRank rank, long stillNanos) {
        if (rank == null) {
            return;
        }
        Supervisor supervisor = supervisors.get(rank.supervisor());
        if (supervisor.lives) {
            var activity =
                    new RankActivity(
                            RankActivity.State.IDLE, StepKind.TRAIN, 0, 0, stillNanos, "waits");
            perform(
                    rank.supervisor(),
                    supervisor.coordinator.onRankEvent(
                            new RankEvent.Lease(rank.rank, rank.epoch(), activity), now));
        }
    }

    private void askAgain(int s, Supervisor supervisor) {
        for (int p = 0; p < processes.size(); p++) {
            if (!supervisor.known.contains(p)
                    || supervisor.coordinator.isSilent(processes.get(p).info)) {
                ask(s, p);
            }
        }
    }

    private boolean somethingIsOnItsWay() {
        return !toStart.isEmpty()
                || processes.stream()
                        .anyMatch(
                                each ->
                                        each.orders.stream().anyMatch(some -> !some.isEmpty())
                                                || hasWords(each));
    }

    private boolean hasWords(Process process) {
        for (int s = 0; s < supervisors.size(); s++) {
            if (supervisors.get(s).lives && !process.words.get(s).isEmpty()) {
                return true;
            }
        }
        return false;
    }
}
