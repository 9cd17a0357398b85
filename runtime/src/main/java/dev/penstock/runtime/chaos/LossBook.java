package dev.penstock.runtime.chaos;

import dev.penstock.actors.spi.RunListener;
import dev.penstock.actors.spi.StepReport;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The first invariant: the committed losses, step by step and bit by bit. A step that is committed
 * again after a recovery must have the same bits, too.
 */
final class LossBook implements RunListener {
    private record Entry(long step, long lossBits) {}

    private final List<Entry> entries = new ArrayList<>();

    @Override
    public void onStep(StepReport report) {
        add(report.step(), report.loss());
    }

    /** A step was committed. */
    synchronized void add(long step, double loss) {
        entries.add(new Entry(step, Double.doubleToRawLongBits(loss)));
    }

    /** A second account of a commit that the book may have. */
    synchronized void addUnlessKnown(long step, double loss) {
        var entry = new Entry(step, Double.doubleToRawLongBits(loss));
        if (!entries.contains(entry)) {
            entries.add(entry);
        }
    }

    /** Returns the number of steps that were committed, each counted once. */
    synchronized int steps() {
        return byStep().size();
    }

    /** Returns how many commits repeated an earlier step. */
    synchronized int again() {
        return entries.size() - byStep().size();
    }

    /** Returns how {@code harmed} differs from this book; empty if it does not. */
    synchronized List<String> differences(LossBook harmed) {
        Map<Long, Long> truth = byStep();
        List<String> differences = new ArrayList<>();
        Map<Long, Long> seen = harmed.byStep();
        for (Entry entry : harmed.all()) {
            Long bits = truth.get(entry.step());
            if (bits == null || bits != entry.lossBits()) {
                differences.add(
                        "step %d: loss %s instead of %s"
                                .formatted(
                                        entry.step(),
                                        said(entry.lossBits()),
                                        bits == null ? "none" : said(bits)));
            }
        }
        truth.keySet().stream()
                .filter(step -> !seen.containsKey(step))
                .forEach(step -> differences.add("step %d: never committed".formatted(step)));
        return differences;
    }

    private synchronized List<Entry> all() {
        return List.copyOf(entries);
    }

    private synchronized Map<Long, Long> byStep() {
        Map<Long, Long> bits = new TreeMap<>();
        entries.forEach(entry -> bits.put(entry.step(), entry.lossBits()));
        return bits;
    }

    private static String said(long bits) {
        return "%s (%016x)".formatted(Double.longBitsToDouble(bits), bits);
    }
}
