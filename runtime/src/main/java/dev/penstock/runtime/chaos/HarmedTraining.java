package dev.penstock.runtime.chaos;

import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.runtime.config.run.LoadedConfig;
import dev.penstock.runtime.launch.AuditTrail;
import dev.penstock.runtime.launch.ConfiguredFaults;
import dev.penstock.runtime.launch.PipelineRun;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.launch.RunStart;
import dev.penstock.runtime.metrics.ListenerFanOut;
import dev.penstock.runtime.metrics.MetricsWriter;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.report.FaultOutcome;
import dev.penstock.runtime.report.RecoveryBook;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.List;
import java.util.function.Consumer;

/**
 * One of the two trainings that are compared: keeps the stages' books, the losses and the outcome
 * of each fault.
 *
 * @param faults what happened to each fault, in the order of the configuration
 */
record HarmedTraining(
        RunOutcome outcome, LossBook losses, AuditTrail books, List<FaultRow> faults) {
    HarmedTraining {
        faults = List.copyOf(faults);
    }

    /**
     * Trains to the end.
     *
     * @param directory created for this run
     * @param onInterrupt as for {@link PipelineRun}
     */
    static HarmedTraining run(
            LoadedConfig loaded,
            Path directory,
            RunListener progress,
            Consumer<Runnable> onInterrupt) {
        RunDirectory run = RunDirectory.create(directory);
        AuditTrail books = AuditTrail.of(run.path());
        books.begin();
        var losses = new LossBook();
        var recoveries = new RecoveryBook(InstantSource.system());
        var options = RunStart.fresh().in(run.path(), loaded.config().run().name());
        try (var assembly = RunAssembly.of(loaded, options)) {
            Files.writeString(run.resolvedConfiguration(), loaded.config().resolved());
            options.write();
            RunOutcome outcome;
            try (var metrics =
                    new MetricsWriter(
                            run.metrics(),
                            0,
                            new PipelineMeter(
                                    assembly.plan().training(), assembly.plan().programGrid()),
                            assembly.steps(),
                            InstantSource.system())) {
                var listener = new ListenerFanOut(List.of(losses, recoveries, metrics, progress));
                outcome = new PipelineRun(assembly, listener, onInterrupt).run();
            }
            return new HarmedTraining(
                    outcome, losses, books, faults(loaded, run, recoveries.all()));
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "cannot write into " + run.path() + ": " + e.getMessage(), e);
        }
    }

    /** What became of the faults of a configuration. */
    static List<FaultRow> faults(
            LoadedConfig loaded, RunDirectory run, List<RecoveryBook.Entry> recoveries) {
        return FaultOutcome.of(
                        ConfiguredFaults.plan(loaded.config()),
                        ConfiguredFaults.markers(run.path()),
                        recoveries)
                .stream()
                .map(FaultRow::of)
                .toList();
    }
}
