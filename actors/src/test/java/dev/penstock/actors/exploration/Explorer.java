package dev.penstock.actors.exploration;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.random.RandomGenerator;
import org.agrona.collections.Long2LongHashMap;
import org.agrona.collections.LongHashSet;

/**
 * Goes through every state that a world can get into, each once, until a promise is broken. What is
 * kept of a state is a number of 64 bits. Of what may happen next, it tries {@link
 * Reduction#enough}.
 *
 * <p>Where there is too much of that, a bound holds: faults may strike anywhere, but otherwise
 * nearly always the first of the moves that would have to be tried is made, which is a fair order;
 * only so many times another one.
 */
final class Explorer {
    /**
     * @param story what happened, in order
     */
    record Violation(String what, List<String> story) {
        @Override
        public String toString() {
            return what + "\n  " + String.join("\n  ", story);
        }
    }

    /** No bound on departures. */
    static final int ANY = -1;

    private static final int LONGEST = 400;
    private static final int CALM = 12;

    /** By a state's number, how many departures were left when it was gone through. */
    private final Long2LongHashMap seen = new Long2LongHashMap(Long.MIN_VALUE);

    private final LongHashSet underWay = new LongHashSet();
    private final Deque<Choice> story = new ArrayDeque<>();
    private final long limit;
    private final int departures;
    private long moves;
    private long ends;
    private int longest;

    /**
     * @param limit of states
     * @param departures from the fair order, at most; or {@link #ANY}
     */
    Explorer(long limit, int departures) {
        this.limit = limit;
        this.departures = departures;
    }

    /** The first violation that is met; empty if there is none, or none within the limit. */
    Optional<Violation> explore(ModelWorld world) {
        story.clear();
        return exploreFrom(world, departures);
    }

    private Optional<Violation> exploreFrom(ModelWorld world, int left) {
        List<Choice> choices = List.of();
        while (choices.size() <= 1) { // what alone may happen needs no state to be kept
            if (world.violation().isPresent()) {
                return Optional.of(violation(world.violation().get()));
            }
            if (story.size() > LONGEST) {
                return Optional.of(violation("it never ends"));
            }
            if (world.isOver()) {
                ends++;
                longest = Math.max(longest, story.size());
                return Optional.empty();
            }
            choices = Reduction.enough(world);
            if (choices.size() == 1) {
                happens(choices.getFirst(), world);
            }
        }
        long number = world.number();
        if (underWay.contains(number)) {
            return Optional.of(violation("it goes round in circles"));
        }
        if (seen.size() >= limit || seen.get(number) >= left) {
            return Optional.empty();
        }
        seen.put(number, left);
        underWay.add(number);
        for (int i = 0; i < choices.size(); i++) {
            boolean departs = i > 0 && !choices.get(i).wrong() && left != ANY;
            if (departs && left == 0) {
                continue;
            }
            ModelWorld next = ObjectGraph.copy(world);
            int before = story.size();
            happens(choices.get(i), next);
            Optional<Violation> found = exploreFrom(next, departs ? left - 1 : left);
            if (found.isPresent()) {
                return found;
            }
            while (story.size() > before) {
                story.pop();
            }
        }
        underWay.remove(number);
        return Optional.empty();
    }

    /**
     * One way through a world, to its end: for faults of which there are too many ways to go
     * through all. Something goes wrong in one of {@value #CALM} moves, as long as it may.
     */
    Optional<Violation> walk(ModelWorld world, RandomGenerator random) {
        story.clear();
        while (world.violation().isEmpty() && !world.isOver()) {
            if (story.size() > LONGEST) {
                return Optional.of(violation("it never ends"));
            }
            List<Choice> choices =
                    random.nextInt(CALM) == 0 ? Choices.mishaps(world) : Choices.steps(world);
            if (choices.isEmpty()) {
                continue; // nothing more may go wrong
            }
            Choice choice = choices.get(random.nextInt(choices.size()));
            happens(choice, world);
        }
        ends++;
        longest = Math.max(longest, story.size());
        return world.violation().map(this::violation);
    }

    private Violation violation(String what) {
        List<String> told = new ArrayList<>();
        story.descendingIterator().forEachRemaining(each -> told.add(brief(each.name())));
        return new Violation(what, told);
    }

    /** Without what is the same in all stories, or in none. */
    private static String brief(String name) {
        return name.replaceAll("links=EpochLinks\\[(epoch=\\d+).*link=]", "$1")
                .replaceAll("timings=.*]]", "..")
                .replaceAll("result=.*]]]", "..");
    }

    private void happens(Choice choice, ModelWorld world) {
        story.push(choice);
        moves++;
        try {
            choice.move().happen(world);
        } catch (RuntimeException e) {
            world.require(false, "%s", e);
        }
    }

    boolean sawAll() {
        return seen.size() < limit;
    }

    @Override
    public String toString() {
        return "%,d states, %,d moves, %,d ends, the longest after %d moves"
                .formatted(seen.size(), moves, ends, longest);
    }
}
