package dev.penstock.runtime.cli.schedule;

import dev.penstock.runtime.config.reading.BadInputException;
import dev.penstock.schedules.generate.base.OpCosts;
import dev.penstock.schedules.generate.wired.WiredOrder;
import dev.penstock.schedules.generate.wired.WiredOrder.Backwards;
import dev.penstock.schedules.generate.wired.Wirings;
import dev.penstock.schedules.ir.PipelineShape;
import dev.penstock.schedules.ir.Placement;
import dev.penstock.schedules.ir.Schedule;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** What orders can be told in which replicas share their micro-batches. */
final class WiredArguments {
    /** Who does what while everybody is there. */
    enum Wiring {
        /** Every replica does its own micro-batches. */
        STRAIGHT,
        /** As many as the speeds of the ranks say. */
        BALANCED,
        /** Drawn by the seed. */
        RANDOM
    }

    private static final int USUAL_PEERS = 2;

    @Option(
            names = "--peers",
            paramLabel = "D",
            description =
                    "Replicas of a wired order (default: 2); --ranks are "
                            + "those of one, --micro-batches those of all.")
    private @Nullable Integer peers;

    @Option(
            names = "--wiring",
            description =
                    "Who does what in a wired order: straight (every "
                            + "replica its own), balanced (by speed) or random "
                            + "(default: straight).")
    private @Nullable Wiring wiring;

    @Option(names = "--seed", paramLabel = "N", description = "Seed of --wiring random.")
    private @Nullable Long seed;

    @Option(
            names = "--without",
            split = ",",
            paramLabel = "RANK,..",
            description =
                    "Ranks of a wired order that are gone: their peers "
                            + "do their micro-batches. Rank r of replica d is "
                            + "d x ranks + r.")
    private List<Integer> without = new ArrayList<>();

    @Option(
            names = "--hold-more",
            paramLabel = "N",
            description =
                    "Micro-batches that a rank of a wired order may hold "
                            + "beside those of 1F1B (default: as many as --ranks, "
                            + "and 0 where every replica does its own).")
    private @Nullable Integer more;

    /** The names of the kinds. */
    static List<String> kinds() {
        return Arrays.stream(Backwards.values()).map(Backwards::kind).toList();
    }

    static boolean isWired(String kind) {
        return kinds().contains(kind);
    }

    /** What is wrong with the options, whatever the kind. */
    void check(OptionProblems problems, int pipelineRanks, int microBatches) {
        problems.count("--peers", peers, 2, OptionProblems.MOST);
        if (peers != null && peers > Math.max(2, microBatches)) {
            problems.add(
                    "--peers: expected at most one for each of %d micro-batches, got %d"
                            .formatted(microBatches, peers));
        }
        problems.count("--hold-more", more, 0, OptionProblems.MOST);
        if (seed != null && wiring != Wiring.RANDOM) {
            problems.add("--seed: expected --wiring random beside it");
        }
        long last = (long) peers() * pipelineRanks - 1;
        for (int rank : without) {
            if (last >= 0 && (rank < 0 || rank > last)) {
                problems.add(
                        "--without: expected ranks from 0 to %d, got %d".formatted(last, rank));
            }
        }
    }

    private int peers() {
        return peers == null ? USUAL_PEERS : peers;
    }

    /** Why the options do not fit a kind that is not wired. */
    List<String> misfits(String kind) {
        var given = new ArrayList<String>();
        if (peers != null) {
            given.add("--peers");
        }
        if (wiring != null) {
            given.add("--wiring");
        }
        if (seed != null) {
            given.add("--seed");
        }
        if (!without.isEmpty()) {
            given.add("--without");
        }
        if (more != null) {
            given.add("--hold-more");
        }
        return given.isEmpty() || isWired(kind)
                ? List.of()
                : List.of(
                        "%s: expected a wired kind (%s), got %s"
                                .formatted(
                                        String.join(", ", given),
                                        String.join(", ", kinds()),
                                        kind));
    }

    /** A pipeline for every replica. */
    PipelineShape shape(PipelineShape ofOne) {
        return ofOne.withPeers(peers());
    }

    /** The order for ranks that are equally fast. */
    Schedule generate(String kind, PipelineShape shape) {
        return generate(kind, shape, Collections.nCopies(shape.ranks(), OpCosts.unit()));
    }

    /**
     * The order for these ranks.
     *
     * @throws BadInputException if the options do not fit the shape
     */
    Schedule generate(String kind, PipelineShape shape, List<OpCosts> costs) {
        Backwards backwards =
                Arrays.stream(Backwards.values())
                        .filter(each -> each.kind().equals(kind))
                        .findFirst()
                        .orElseThrow();
        // a rank waits for peers that have more to do, and full backwards then come late
        int usual = isPlain() ? 0 : shape.pipelineRanks();
        int held = more == null ? usual : more;
        List<Integer> caps = WiredOrder.usualCaps(shape).stream().map(c -> c + held).toList();
        try {
            return WiredOrder.schedule(shape, placement(shape, costs), backwards, costs, caps);
        } catch (IllegalArgumentException e) {
            throw new BadInputException(String.valueOf(e.getMessage()));
        }
    }

    private boolean isPlain() {
        return without.isEmpty() && (wiring == null || wiring == Wiring.STRAIGHT);
    }

    private Placement placement(PipelineShape shape, List<OpCosts> costs) {
        Wirings wirings = Wirings.equal(shape).withCosts(costs);
        Placement wired =
                switch (wiring) {
                    case BALANCED -> wirings.balanced();
                    case RANDOM -> wirings.random(seed == null ? 0 : seed);
                    case STRAIGHT -> wirings.straight();
                    case null -> wirings.straight();
                };
        for (int rank : without) { // as a run loses them, one after another
            wired = wirings.without(wired, rank);
        }
        return wired;
    }
}
