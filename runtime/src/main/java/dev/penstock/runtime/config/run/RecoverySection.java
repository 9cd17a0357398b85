package dev.penstock.runtime.config.run;

import dev.penstock.runtime.config.reading.Setting;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Section {@code recovery}: how a run continues after the death of a part of it, or a step that is
 * not finite. A run in a single process has no part that could die alone.
 *
 * @param enabled whether it goes on; otherwise a dead stage process ends the run
 * @param maxRestarts the most recoveries within {@code window}
 * @param window see {@code maxRestarts}
 * @param roomPatience so long a run of a cluster waits for room for ranks whose node is gone
 * @param rebalanceAfter so long a run waits for room for ranks whose node is gone, before they go
 *     to nodes that have others and layers move to where they are faster; empty: they wait for
 *     room. Where every stage has a process of its own, ranks go to another's as soon as no process
 *     may be started any more
 * @param spares processes that wait, warm, to take a dead one's place; only where every stage has a
 *     process of its own
 * @param nonFinite what becomes of a step with a NaN or an infinity
 * @param mirror whether every rank's parameters and optimizer state are kept a second time by the
 *     next rank, so that a death loses no committed step
 * @param degraded whether the run goes on without dead ranks whose stages other replicas hold, by
 *     an order in which these do their work, until a process for each is there again
 */
public record RecoverySection(
        @Setting(is = "true", doc = "go on after the death of a stage's process") boolean enabled,
        @Setting(
                        is = "5",
                        range = "[0, )",
                        doc = "recoveries within the window; one more ends the run")
                int maxRestarts,
        @Setting(is = "10 minutes", range = "[1 s, 10 days]", doc = "for max-restarts")
                Duration window,
        @Setting(
                        is = "10 minutes",
                        range = "[0 s, 10 days]",
                        doc = "in a cluster: wait for a node with room for a dead node's ranks")
                Duration roomPatience,
        @Setting(
                        is = "never",
                        word = "never",
                        range = "[0 s, 10 days]",
                        doc =
                                "wait so long for room, then go on with fewer nodes or processes; layers move to where they are faster")
                Optional<Duration> rebalanceAfter,
        @Setting(
                        is = "1",
                        range = "[0, 64]",
                        doc =
                                "with a process per stage: warm processes that wait for a dead one's place")
                int spares,
        @Setting(is = "halt", doc = "after a NaN or infinity: end, leave the step out, go back")
                NonFinite nonFinite,
        @Setting(is = "false", doc = "keep every rank's state a second time on its neighbour")
                boolean mirror,
        @Setting(
                        is = "false",
                        doc =
                                "with a wired order: go on without ranks whose work other replicas can do, until they are back")
                boolean degraded) {

    /** Returns what is said here and has no effect, for people. */
    List<String> unusedNotes() {
        List<String> said = new ArrayList<>();
        if (rebalanceAfter.isPresent()) {
            said.add("rebalance-after");
        }
        if (degraded) {
            said.add("degraded");
        }
        return enabled
                ? List.of()
                : said.stream()
                        .map(
                                ("recovery.%s has no effect: recovery.enabled = false ends the run"
                                                + " with the first death")
                                        ::formatted)
                        .toList();
    }

    /** End the run, leave the step out, or go back to the last checkpoint. */
    public enum NonFinite {
        HALT,
        SKIP,
        ROLLBACK
    }
}
