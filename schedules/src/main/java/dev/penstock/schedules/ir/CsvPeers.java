package dev.penstock.schedules.ir;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.IntStream;

/**
 * How many peers explain a file in which ranks share stages. The file has no header, so the ranks
 * are those of a wired order only if everything fits: a stage stands at one place in the pipelines
 * of all peers, the places are loop or V placement, and whatever is computed of a micro-batch at a
 * stage is computed on one rank. The fewest peers with which that is so are taken.
 */
final class CsvPeers {
    private record Work(int stage, int microBatch) {}

    private final SortedMap<Integer, SortedSet<Integer>> ranksOfStage = new TreeMap<>();
    private final Map<Work, Integer> rankOf = new HashMap<>();
    private boolean torn;

    void add(int rank, WorkUnit unit) {
        ranksOfStage.computeIfAbsent(unit.stage(), _ -> new TreeSet<>()).add(rank);
        Integer before = rankOf.putIfAbsent(new Work(unit.stage(), unit.microBatch()), rank);
        torn |= before != null && before != rank;
    }

    /**
     * The number of peers.
     *
     * @param ranks lines of the file
     * @return 1 if it is one pipeline or no wired order
     */
    int count(int ranks) {
        int stages = ranksOfStage.size();
        boolean shared = ranksOfStage.values().stream().anyMatch(holders -> holders.size() > 1);
        for (int peers = 2; shared && !torn && peers <= ranks; peers++) {
            int pipelineRanks = ranks / peers;
            if (ranks % peers == 0
                    && stages % pipelineRanks == 0
                    && (stages == 1 || pipelineRanks > 1)
                    && (fits(Placement.loop(pipelineRanks, stages / pipelineRanks))
                            || (stages == 2 * pipelineRanks && fits(Placement.v(pipelineRanks))))) {
                return peers;
            }
        }
        return 1;
    }

    /** Whether everybody is where this placement of one pipeline has it. */
    private boolean fits(Placement pipeline) {
        int ranks = 1 + pipeline.rankOfStage().stream().mapToInt(r -> r).max().orElse(0);
        return ranksOfStage.entrySet().stream()
                .allMatch(
                        stage ->
                                stage.getKey() < pipeline.stages()
                                        && stage.getValue().stream()
                                                .allMatch(
                                                        rank ->
                                                                rank % ranks
                                                                        == pipeline.rankOf(
                                                                                stage.getKey())));
    }

    /** Ranks without any op: nothing says that they are there. */
    static List<Integer> idle(List<List<Op>> programs) {
        return IntStream.range(0, programs.size())
                .filter(rank -> programs.get(rank).isEmpty())
                .boxed()
                .toList();
    }
}
