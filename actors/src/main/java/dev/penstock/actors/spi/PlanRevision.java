package dev.penstock.actors.spi;

import java.util.List;

/**
 * A change of a run's plan while the run goes on: settings that replace those of its configuration
 * from a step on. Every process derives the plan from them by itself, as it did at the start, and
 * compares the hash.
 *
 * @param number counts the run's revisions, from 1; 0 is the plan that the run began with
 * @param settings as on a command line, such as {@code pipeline.partition=[3,1]}
 * @param hash of the plan that comes of them
 * @param reason for people, in a line
 */
public record PlanRevision(int number, List<String> settings, String hash, String reason) {
    /** The plan that a run begins with. */
    public static final PlanRevision NONE = new PlanRevision(0, List.of(), "", "");

    public PlanRevision {
        settings = List.copyOf(settings);
    }

    /** What changes and why, in a line, for people. */
    public String words() {
        String changes = settings.isEmpty() ? "the first one" : String.join(", ", settings);
        return reason.isEmpty() ? changes : "%s (%s)".formatted(changes, reason);
    }
}
