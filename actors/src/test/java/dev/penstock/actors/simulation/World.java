package dev.penstock.actors.simulation;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.PriorityQueue;
import java.util.Random;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Virtual time: what happens when, and a seed that decides everything that chance does. */
public final class World {
    public static final long MILLISECOND = 1_000_000;
    public static final long SECOND = 1_000 * MILLISECOND;

    /** The order of insertion settles equal times: what was promised first happens first. */
    private record Event(long at, long number, Runnable act) implements Comparable<Event> {
        @Override
        public int compareTo(Event other) {
            int byTime = Long.compare(at, other.at);
            return byTime != 0 ? byTime : Long.compare(number, other.number);
        }
    }

    /** Made into text only if somebody reads it. */
    private record Line(long at, String format, List<@Nullable Object> values) {
        String text() {
            return "%10.4f s  %s".formatted(at / 1e9, format.formatted(values.toArray()));
        }
    }

    private static final int KEPT_LINES = Integer.getInteger("simulation.lines", 400);

    public final Random random;
    private final PriorityQueue<Event> events = new PriorityQueue<>();
    private final Deque<Line> trace = new ArrayDeque<>();
    private final List<String> violations = new ArrayList<>();
    private long now;
    private long scheduled;
    private long happened;

    public World(long seed) {
        this.random = new Random(seed);
    }

    public long now() {
        return now;
    }

    public long happened() {
        return happened;
    }

    public void after(long nanos, Runnable act) {
        events.add(new Event(now + nanos, scheduled++, act));
    }

    public void at(long time, Runnable act) {
        events.add(new Event(Math.max(now, time), scheduled++, act));
    }

    /** False when nothing will ever happen again. */
    public boolean step() {
        Event next = events.poll();
        if (next == null) {
            return false;
        }
        now = next.at();
        happened++;
        next.act().run();
        return true;
    }

    /** Uniform, both ends included. */
    public long between(long least, long most) {
        return least + (long) (random.nextDouble() * (most - least + 1));
    }

    public boolean chance(double probability) {
        return random.nextDouble() < probability;
    }

    public <T> T one(List<T> of) {
        return of.get(random.nextInt(of.size()));
    }

    // ---- what is told of it ---------------------------------------------------------------------

    public void note(String format, @Nullable Object... values) {
        trace.addLast(new Line(now, format, Arrays.asList(values)));
        if (trace.size() > KEPT_LINES) {
            trace.removeFirst();
        }
    }

    public void violated(String format, @Nullable Object... values) {
        String text = format.formatted(values);
        note("VIOLATED: %s", text);
        violations.add(text);
    }

    public List<String> violations() {
        return violations;
    }

    public String trace() {
        return trace.stream().map(Line::text).collect(Collectors.joining(System.lineSeparator()));
    }
}
