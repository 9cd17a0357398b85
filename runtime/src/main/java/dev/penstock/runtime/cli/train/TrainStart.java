package dev.penstock.runtime.cli.train;

import dev.penstock.runtime.cli.command.ExitCode;
import dev.penstock.runtime.cli.command.RunLog;
import dev.penstock.runtime.launch.Interrupts;
import dev.penstock.runtime.launch.RunAssembly;
import dev.penstock.runtime.metrics.RunDirectory;
import dev.penstock.runtime.training.TrainingStart;
import java.io.PrintWriter;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Trains a run of this process, which Ctrl-C ends. */
final class TrainStart implements TrainingStart.Trainer<Integer> {
    private final List<String> words;
    private final boolean resume;
    private final PrintWriter out;
    private final PrintWriter err;
    private @Nullable Interrupts interrupts;

    /**
     * @param words of the command line
     */
    TrainStart(List<String> words, boolean resume, PrintWriter out, PrintWriter err) {
        this.words = words;
        this.resume = resume;
        this.out = out;
        this.err = err;
    }

    @Override
    public void onBegin(RunDirectory directory) {
        Interrupts.outliveTerminal();
        interrupts().onInterrupt(() -> leave(directory));
    }

    @Override
    public Integer train(RunDirectory directory, RunAssembly assembly) {
        try (RunLog _ = RunLog.to(directory.log())) {
            String again = ResumeCommand.of(words, directory.path());
            return new TrainRun(directory, assembly, interrupts(), again, out, err).call();
        }
    }

    private Interrupts interrupts() {
        Interrupts installed = interrupts;
        if (installed == null) {
            installed = Interrupts.install();
            interrupts = installed;
        }
        return installed;
    }

    /** An interrupt before there is a run to save. */
    private void leave(RunDirectory directory) {
        if (!resume) {
            directory.removeIfEmpty();
        }
        Runtime.getRuntime().exit(ExitCode.INTERRUPTED);
    }

    /** At once: whatever this process still wrote would be among the other's files. */
    @Override
    public void onLost(RunDirectory directory) {
        err.printf(
                "penstock: another process went on with the run in %s while this one stood still; this one ends%n",
                directory.path());
        err.flush();
        Runtime.getRuntime().halt(ExitCode.FAILURE);
    }
}
