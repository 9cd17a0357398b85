package dev.penstock.runtime.events;

import dev.penstock.actors.dataplane.LinkTraffic;
import dev.penstock.actors.precision.Overflow;
import dev.penstock.actors.spi.RankStep;
import dev.penstock.actors.spi.RecoveryReport;
import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.RunMember;
import dev.penstock.actors.spi.RunOutcome;
import dev.penstock.actors.spi.StepReport;
import dev.penstock.runtime.metrics.Activity;
import dev.penstock.runtime.metrics.ConfiguredSteps;
import dev.penstock.runtime.metrics.Notices;
import dev.penstock.runtime.metrics.PipelineMeter;
import dev.penstock.runtime.metrics.StepMeasure;
import dev.penstock.runtime.metrics.StepTimes;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * Writes what a run's listeners are told into its event log. Never throws, and never makes the run
 * wait: a thread of its own writes, and what the disk does not keep up with is left out and said.
 */
public final class EventLog implements RunListener, AutoCloseable {
    private static final double NANOS_PER_MICRO = 1e3;
    private static final int NO_RANK = -1;

    private final LineAppender lines;
    private final PipelineMeter meter;
    private final ConfiguredSteps steps;
    private final OpTimesSampling sampling;
    private final InstantSource clock;
    private final Path file;
    private final Pace leases = new Pace();
    private final Pace links = new Pace();
    private List<Long> peaks = List.of();
    private RunEvent.@Nullable Opened opened;
    private List<RunEvent.Members.Member> members = List.of();
    private @Nullable StepReport unlinked;
    private boolean closed;

    /**
     * Opens the log behind what it holds.
     *
     * @param began the first line; its time is filled in
     * @param everySteps op times are written of the first steps and then of every so many, rarer
     *     once they have filled much of the disk
     */
    public EventLog(
            Path file,
            RunEvent.Began began,
            PipelineMeter meter,
            ConfiguredSteps steps,
            int everySteps,
            InstantSource clock) {
        this.file = file;
        this.lines = new LineAppender(file, clock);
        this.meter = meter;
        this.steps = steps;
        this.sampling = new OpTimesSampling(everySteps);
        this.clock = clock;
        lines.append(began);
    }

    /** Adds how the run ended, after {@link #close}. */
    public static void appendEnd(Path file, RunOutcome outcome, InstantSource clock) {
        long now = clock.millis();
        RunEvent.Ended ended =
                switch (outcome) {
                    case RunOutcome.Completed(long step) ->
                            new RunEvent.Ended(now, RunEvent.Ended.Outcome.COMPLETED, step, "");
                    case RunOutcome.Interrupted(long step) ->
                            new RunEvent.Ended(now, RunEvent.Ended.Outcome.INTERRUPTED, step, "");
                    case RunOutcome.Failed(long step, String reason) ->
                            new RunEvent.Ended(now, RunEvent.Ended.Outcome.FAILED, step, reason);
                };
        try (var lines = new LineAppender(file, clock)) {
            lines.append(ended);
        }
    }

    @Override
    public void onOpened(List<String> devices, String fingerprint) {
        opened = new RunEvent.Opened(clock.millis(), devices, fingerprint);
        lines.append(opened);
    }

    /** The run follows another plan: what readers know of it begins anew. */
    public void follow(RunEvent.Began began) {
        lines.append(began);
        if (opened != null) {
            lines.append(opened);
        }
    }

    @Override
    public void onStep(StepReport report) {
        lines.append(stepped(report));
        if (sampling.wants(report.step())) {
            lines.append(opTimes(report), sampling::wrote);
        }
        unlinked = report;
        if (links.isDue(clock.millis())) {
            appendLinks(report);
        }
    }

    @Override
    public void onOverflow(Overflow overflow) {
        note(RunEvent.Noted.Kind.OVERFLOW, overflow.words());
    }

    @Override
    public void onEvaluation(long step, double loss, OptionalDouble accuracy) {
        lines.append(new RunEvent.Evaluated(clock.millis(), step, loss));
    }

    @Override
    public void onCheckpoint(long step, long bytes, long nanos) {
        lines.append(new RunEvent.Saved(clock.millis(), step, bytes, micros(nanos)));
    }

    /**
     * A published checkpoint was read back; also after {@link #close}, from any thread.
     *
     * @param problem what is wrong with it; empty if nothing is
     */
    public synchronized void onVerified(long step, long nanos, String problem) {
        var verified =
                new RunEvent.Verified(
                        clock.millis(), step, problem.isEmpty(), micros(nanos), problem);
        if (!closed) {
            lines.append(verified);
            return;
        }
        try (var late = new LineAppender(file, clock)) { // as appendEnd does
            late.append(verified);
        }
    }

    @Override
    public void onMembers(List<RunMember> present) {
        List<RunEvent.Members.Member> now = present.stream().map(EventLog::member).toList();
        long time = clock.millis();
        boolean changed = !now.equals(members);
        if (changed) {
            members = now;
            lines.append(new RunEvent.Members(time, now));
        }
        if (changed || leases.isDue(time)) {
            List<Long> ages = present.stream().map(RunMember::leaseMillis).toList();
            leases.told(time);
            lines.append(new RunEvent.Leases(time, ages), leases::wrote);
        }
    }

    @Override
    public void onCheckpointFailed(long step, String reason) {
        note(
                RunEvent.Noted.Kind.SAVE_FAILED,
                "no checkpoint of step %d: %s".formatted(step, reason));
    }

    @Override
    public void onRecovering(int epoch, String cause) {
        note(RunEvent.Noted.Kind.RECOVERING, "in epoch %d: %s".formatted(epoch, cause));
    }

    @Override
    public void onRecovery(RecoveryReport report) {
        lines.append(
                new RunEvent.Recovered(
                        clock.millis(),
                        Notices.recovery(report),
                        report.epoch(),
                        report.replaced(),
                        report.restart().name().toLowerCase(Locale.ROOT),
                        micros(report.detectNanos()),
                        micros(report.resumeNanos()),
                        report.stepsLost(),
                        report.fromStep()));
    }

    @Override
    public void onStall(String report) {
        note(RunEvent.Noted.Kind.STALL, report);
    }

    @Override
    public void onPlanNote(String note) {
        note(RunEvent.Noted.Kind.PLAN, note);
    }

    @Override
    public void onStraggler(int rank, long step, double factor) {
        note(RunEvent.Noted.Kind.STRAGGLER, Notices.straggler(rank, step, factor));
    }

    /** Writes what is on its way, for a while at most. */
    @Override
    public synchronized void close() {
        StepReport last = unlinked;
        if (last != null && !closed) {
            appendLinks(last);
        }
        closed = true;
        lines.close();
    }

    private void appendLinks(StepReport report) {
        unlinked = null;
        List<RunEvent.Links.Link> carried =
                report.ranks().stream()
                        .flatMap(rank -> rank.links().stream().map(link -> link(rank.rank(), link)))
                        .toList();
        if (!carried.isEmpty()) {
            long time = clock.millis();
            links.told(time);
            lines.append(new RunEvent.Links(time, report.step(), carried), links::wrote);
        }
    }

    private static RunEvent.Links.Link link(int rank, LinkTraffic link) {
        return new RunEvent.Links.Link(
                rank,
                link.peer(),
                link.sentBytes(),
                link.receivedBytes(),
                link.backPressured(),
                link.outOfCredit(),
                link.resentFrames(),
                link.corruptFrames());
    }

    private static RunEvent.Members.Member member(RunMember member) {
        return new RunEvent.Members.Member(
                member.rank().orElse(NO_RANK), member.node(), member.pid(), member.version());
    }

    private void note(RunEvent.Noted.Kind kind, String text) {
        lines.append(new RunEvent.Noted(clock.millis(), kind, text));
    }

    private RunEvent.Stepped stepped(StepReport report) {
        StepMeasure measure = meter.measure(report);
        List<Long> now = report.ranks().stream().map(RankStep::peakBytes).toList();
        boolean risen = !now.equals(peaks);
        peaks = now;
        return new RunEvent.Stepped(
                clock.millis(),
                report.step(),
                report.loss(),
                report.gradientNorm(),
                steps.learningRate().applyAsDouble(report.update()),
                steps.tokens().of(report.step()),
                micros(report.endNanos() - report.startNanos()),
                measure.times().bubble(),
                measure.ideal().bubble(),
                rankMicros(measure.times()),
                risen ? now : List.of());
    }

    private static Map<String, List<Long>> rankMicros(StepTimes times) {
        Map<String, List<Long>> micros = new LinkedHashMap<>();
        for (Activity activity : Activity.values()) {
            micros.put(
                    activity.label(),
                    IntStream.range(0, times.ranks().size())
                            .mapToObj(rank -> micros(times.nanos(rank, activity)))
                            .toList());
        }
        return micros;
    }

    private RunEvent.OpTimes opTimes(StepReport report) {
        long start = report.startNanos();
        return new RunEvent.OpTimes(
                clock.millis(),
                report.step(),
                report.ranks().stream()
                        .map(
                                rank ->
                                        new RunEvent.OpTimes.Rank(
                                                sinceStart(rank.opStartNanos(), start),
                                                sinceStart(rank.opEndNanos(), start),
                                                sinceStart(rank.updateStartNanos(), start),
                                                sinceStart(rank.updateEndNanos(), start),
                                                ifAny(rank.collectiveNanos()),
                                                ifAny(rank.copyNanos())))
                        .toList());
    }

    private static int[] sinceStart(long[] nanos, long start) {
        int[] micros = new int[nanos.length];
        for (int i = 0; i < micros.length; i++) {
            micros[i] = sinceStart(nanos[i], start);
        }
        return micros;
    }

    private static int[] ifAny(long[] nanos) {
        boolean any = LongStream.of(nanos).anyMatch(each -> each != 0);
        return any ? sinceStart(nanos, 0) : new int[0];
    }

    private static int sinceStart(long nanos, long start) {
        return Math.clamp(micros(nanos - start), Integer.MIN_VALUE, Integer.MAX_VALUE);
    }

    private static long micros(long nanos) {
        return Math.round(nanos / NANOS_PER_MICRO);
    }
}
