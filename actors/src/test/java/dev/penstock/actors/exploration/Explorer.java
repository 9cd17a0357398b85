package dev.penstock.actors.exploration;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.random.RandomGenerator;
import org.agrona.collections.LongHashSet;

/**
 * Goes through every state that a world can get into, each once, until a promise is broken. What is
 * kept of a state is a number of 64 bits.
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

    private static final int LONGEST = 400;
    private static final int CALM = 12;

    private final LongHashSet seen = new LongHashSet();
    private final Deque<Choice> story = new ArrayDeque<>();
    private final long limit;
    private long ends;
    private int longest;

    /**
     * @param limit of states
     */
    Explorer(long limit) {
        this.limit = limit;
    }

    /** The first violation that is met; empty if there is none, or none within the limit. */
    Optional<Violation> explore(ModelWorld world) {
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
        if (seen.size() >= limit || !seen.add(world.number())) {
            return Optional.empty();
        }
        List<Choice> choices = Choices.all(world);
        for (int i = 0; i < choices.size(); i++) {
            ModelWorld next = i == choices.size() - 1 ? world : ObjectGraph.copy(world);
            story.push(choices.get(i));
            Optional<Violation> found = happens(choices.get(i), next);
            story.pop();
            if (found.isPresent()) {
                return found;
            }
        }
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
            story.push(choice);
            try {
                choice.move().happen(world);
            } catch (RuntimeException e) {
                world.require(false, "%s", e);
            }
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

    private Optional<Violation> happens(Choice choice, ModelWorld world) {
        try {
            choice.move().happen(world);
        } catch (RuntimeException e) {
            world.require(false, "%s", e);
        }
        return explore(world);
    }

    boolean sawAll() {
        return seen.size() < limit;
    }

    @Override
    public String toString() {
        return "%,d states, %,d ends, the longest after %d moves"
                .formatted(seen.size(), ends, longest);
    }
}
