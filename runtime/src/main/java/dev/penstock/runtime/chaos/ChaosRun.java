package dev.penstock.runtime.chaos;

import dev.penstock.actors.collective.CollectiveLibrary;
import dev.penstock.actors.fault.Fault;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.config.reading.Problem;
import dev.penstock.runtime.config.run.ConfigLoader;
import dev.penstock.runtime.config.run.ExposedDataPlane;
import dev.penstock.runtime.config.run.FaultEntry;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.launch.AuditTrail.Holder;
import dev.penstock.runtime.launch.ConfiguredFaults;
import dev.penstock.runtime.launch.RunParts;
import dev.penstock.runtime.launch.RunStart;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * A training without faults, the same under a random schedule of faults, and the comparison.
 *
 * @param configuration the file
 * @param overrides of its keys
 * @param seed decides the faults
 * @param count of faults
 * @param words of the command line that say where it is trained
 * @param inCluster whether the run under faults has a cluster of its own, whose nodes are struck
 *     from outside as well
 */
public record ChaosRun(
        Path configuration,
        List<String> overrides,
        long seed,
        int count,
        List<String> words,
        boolean inCluster) {
    private static final String NO_FAULTS = "fault=[]";

    /** The losses have the same bits however many processes there are. */
    private static final String IN_ONE_PROCESS = "pipeline.processes=single";

    public ChaosRun {
        overrides = List.copyOf(overrides);
        words = List.copyOf(words);
    }

    /** Watches the trainings in progress. */
    public interface Watcher {
        /** A training begins. */
        RunListener training(String name, long steps);

        /** The faults were drawn. */
        void drawn(List<String> faults);

        /** A node was struck, or the run has recovered. */
        void struck(String told);
    }

    /**
     * Trains twice and compares.
     *
     * @param directory an empty one, for the files of both
     * @param onInterrupt is given the action that ends it early at the user's request
     * @throws dev.penstock.runtime.config.ConfigException with all problems of the configuration,
     *     before anything starts
     */
    public ChaosVerdict run(Path directory, Watcher watcher, Consumer<Runnable> onInterrupt) {
        LoadedConfig calm = load(NO_FAULTS);
        List<Problem> problems =
                new ArrayList<>(ExposedDataPlane.ofLocalRun(calm).stream().toList());
        List<Strike> strikes = strikes(calm.config().run().steps());
        requireOrderedSums(calm, problems);
        requireRecovery(calm, problems);
        RunParts parts = RunParts.prepare(calm.asDraft(), RunStart.fresh(), problems);
        parts.start().close();
        var training = parts.schedule().training();
        List<FaultKind> kinds = FaultKind.of(parts.config(), parts.config().recovery().enabled());
        List<FaultEntry> faults =
                new FaultDraw(parts.config(), training, kinds, seed).draw(count - strikes.size());
        LoadedConfig harmed = load("fault=" + FaultEntry.written(faults));
        RunParts.prepare(harmed.asDraft(), RunStart.fresh(), List.of()).start().close();
        watcher.drawn(
                Stream.concat(
                                ConfiguredFaults.plan(harmed.config()).faults().stream()
                                        .map(Fault::describe),
                                strikes.stream().map(Strike::describe))
                        .toList());

        long steps = parts.config().run().steps();
        var truth =
                HarmedTraining.run(
                        load(IN_ONE_PROCESS, NO_FAULTS),
                        directory.resolve("reference"),
                        watcher.training("without faults", steps),
                        onInterrupt);
        if (!(truth.outcome() instanceof RunOutcome.Completed)) {
            return ChaosVerdict.withoutReference(this, truth);
        }
        RunListener progress = watcher.training("with faults", steps);
        Path folder = directory.resolve("faults");
        var tried =
                inCluster
                        ? ClusterTraining.run(
                                harmed,
                                strikes,
                                new Random(seed),
                                folder,
                                progress,
                                watcher::struck,
                                onInterrupt)
                        : HarmedTraining.run(harmed, folder, progress, onInterrupt);
        List<Holder> holders = Holder.all(parts.config().grid(), training.placement());
        var applied =
                new AppliedOnce(
                        training.shape(), steps, holders, parts.config().parallel().outer());
        return ChaosVerdict.of(this, applied, truth, tried);
    }

    /** Half of all faults in a cluster come from outside. */
    private List<Strike> strikes(long steps) {
        return inCluster
                ? Strike.draw(
                        new Random(seed),
                        (count + 1) / 2,
                        ChaosCluster.kinds(),
                        ChaosCluster.SEEDS,
                        ChaosCluster.WORKERS,
                        steps)
                : List.of();
    }

    /** Losses are compared bit for bit, even if ranks are located elsewhere than before. */
    private static void requireOrderedSums(LoadedConfig calm, List<Problem> problems) {
        if (calm.config().library() != CollectiveLibrary.NEVER) {
            problems.add(
                    calm.problem(
                            "parallel.collectives",
                            "ordered, since chaos compares bits",
                            calm.config().parallel().collectives().name().toLowerCase(Locale.ROOT),
                            "NCCL's sums depend on where ranks are located: try --set"
                                    + " parallel.collectives=ordered"));
        }
    }

    /** Nodes that are struck die. */
    private void requireRecovery(LoadedConfig calm, List<Problem> problems) {
        if (inCluster && !calm.config().recovery().enabled()) {
            problems.add(
                    calm.problem(
                            "recovery.enabled",
                            "true, since chaos in a cluster kills nodes",
                            "false",
                            "try --set recovery.enabled=true"));
        }
    }

    /**
     * More restarts than a run usually survives are the point here; the user's overrides still
     * apply.
     */
    private LoadedConfig load(String... last) {
        List<String> all = new ArrayList<>();
        all.add("recovery.max-restarts=" + 2 * count);
        all.addAll(overrides);
        all.addAll(List.of(last));
        return ConfigLoader.loadWithOrigins(configuration, all);
    }

    /** Returns the command that repeats this run. */
    public String command() {
        var all = new ArrayList<>(List.of("penstock", "chaos"));
        all.addAll(words);
        overrides.forEach(override -> all.addAll(List.of("--set", "'" + override + "'")));
        all.addAll(List.of("--seed", "" + seed, "--faults", "" + count));
        return String.join(" ", all);
    }
}
