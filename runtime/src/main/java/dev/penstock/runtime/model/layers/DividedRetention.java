package dev.penstock.runtime.model.layers;

import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.ShardMap;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.RetentionShape;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.LayerActivations;
import dev.penstock.runtime.model.shape.PartTokens;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * Retention over sequences whose tokens are spread over several ranks according to {@link
 * PartTokens}. Over n tokens a state R becomes {@code g^n R + S}, and S depends on these tokens
 * alone. So every part computes S of its runs, all parts gather them, and each adds up what lies
 * before its own runs, in the order of the sequence:
 *
 * <pre>
 *   tokens of a slice     0 1     2 3     4 5     6 7
 *   held by part          0       1       1       0
 *   gathered              S0      S1      S2      S3
 *   state before them     R       R0      R1      R2       R_i = g^2 R_(i-1) + S_i
 * </pre>
 *
 * <p>R is the state before the slice; R3, which every part has as well, is that of the next one.
 * Gradients of states go the same way from the last run to the first. Kept are, of a micro-batch,
 * for each sequence the state between slices, and those of each run as {@link Retention} keeps
 * them.
 */
public final class DividedRetention implements Attention {
    private static final int MOST_RUNS = 2;

    private final Retention whole;
    private final List<PartTokens> held;
    private final int part;
    private final int sequences;
    private final int tokens;
    private final int grid;
    private final Tensor room;
    private CollectiveGroup parts = SoloGroup.GROUP;

    /**
     * @param whole with all states of the current micro-batch; computes what runs do not change
     * @param held entry i: the tokens of a sequence that part i holds
     * @param part this one
     * @param blocksOfPart all that this part holds of a micro-batch, on the grid of whole sequences
     * @param room as many rows as {@link #roomRows}, as wide as states
     */
    public DividedRetention(
            Retention whole,
            List<PartTokens> held,
            int part,
            TokenBlocks blocksOfPart,
            Tensor room) {
        this.whole = whole;
        this.held = List.copyOf(held);
        this.part = part;
        this.room = room;
        sequences = blocksOfPart.sequences();
        tokens = blocksOfPart.tokens();
        grid = blocksOfPart.grid();
    }

    /** Returns the rows of the room in which parts gather what their runs add to states. */
    public static int roomRows(int parts, int sequences) {
        return parts * MOST_RUNS * sequences;
    }

    @Override
    public void connect(CollectiveGroup context) {
        parts = context;
    }

    @Override
    public void forward(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        List<Piece> all = pieces(blocks);
        eachOwn(
                all,
                blocks,
                (piece, sequence, states, run) -> {
                    kernels().zero(states.rows(0, 1));
                    computeStates(qkv, states, run);
                    Tensor last = states.rows(states.rows() - 1, 1);
                    kernels().copy(last, gathered(piece, all, sequence));
                });
        gather(all);
        Tensor state = between();
        if (blocks.firstToken() == 0) {
            kernels().zero(state);
        }
        for (Piece piece : all) {
            if (piece.part == part) {
                for (int b = 0; b < sequences; b++) {
                    kernels().copy(state.rows(b, 1), states(piece, b).rows(0, 1));
                }
            }
            pass(piece, all, state);
        }
        eachOwn(all, blocks, (_, _, states, run) -> computeStates(qkv, states, run));
        forwardAgain(qkv, a, blocks);
    }

    private void computeStates(Tensor qkv, Tensor states, Run run) {
        kernels().retentionStates(run.of(qkv), states, shape(), run.tokens(), run.chunks);
    }

    @Override
    public void forwardAgain(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        eachOwn(
                pieces(blocks),
                blocks,
                (_, _, states, run) ->
                        kernels()
                                .retention(
                                        run.of(qkv),
                                        states,
                                        run.ofUnit(a.attended()),
                                        shape(),
                                        run.tokens(),
                                        run.chunks));
        whole.normalise(qkv, a, blocks);
    }

    @Override
    public void backward(
            Tensor qkv, LayerActivations a, Tensor dAttended, Tensor dQkv, TokenBlocks blocks) {
        whole.normaliseBackward(qkv, a, dAttended, dQkv, blocks);
        List<Piece> all = pieces(blocks);
        eachOwn(
                all,
                blocks,
                (piece, sequence, _, run) -> {
                    Tensor gradient = gathered(piece, all, sequence);
                    kernels().zero(gradient);
                    kernels()
                            .retentionStateGradient(
                                    run.of(qkv),
                                    gradient,
                                    run.ofUnit(dAttended),
                                    shape(),
                                    run.tokens(),
                                    run.chunks);
                });
        gather(all);
        Tensor state = between();
        if (blocks.firstToken() + blocks.tokens() == tokens) {
            kernels().zero(state);
        }
        for (Piece piece : all.reversed()) {
            if (piece.part == part) {
                for (int b = 0; b < sequences; b++) {
                    Tensor states = states(piece, b);
                    kernels().copy(state.rows(b, 1), states.rows(states.rows() - 1, 1));
                }
            }
            pass(piece, all, state);
        }
        eachOwn(
                all,
                blocks,
                (_, _, states, run) ->
                        kernels()
                                .retentionBackward(
                                        run.of(qkv),
                                        states,
                                        run.ofUnit(dAttended),
                                        run.of(dQkv),
                                        shape(),
                                        run.tokens(),
                                        run.chunks));
    }

    /**
     * A run of tokens of a unit.
     *
     * @param part that holds it
     * @param number among the runs of its part
     */
    private record Piece(int part, int number, PartTokens.Run tokens) {}

    /** Returns the runs of all parts in the order of the sequence. */
    private List<Piece> pieces(TokenBlocks blocks) {
        List<Piece> all = new ArrayList<>();
        for (int p = 0; p < held.size(); p++) {
            List<PartTokens.Run> runs = held.get(p).of(blocks.firstToken(), blocks.tokens());
            for (int number = 0; number < runs.size(); number++) {
                all.add(new Piece(p, number, runs.get(number)));
            }
        }
        all.sort(Comparator.comparingInt(piece -> piece.tokens.first()));
        return all;
    }

    /**
     * A run of one sequence.
     *
     * @param row its first one in the micro-batch
     * @param rowOfUnit the same in the unit
     * @param chunks the run at its place in the sequence
     */
    private record Run(int row, int rowOfUnit, TokenBlocks chunks) {
        int tokens() {
            return chunks.tokens();
        }

        Tensor of(Tensor microBatch) {
            return microBatch.rows(row, tokens());
        }

        Tensor ofUnit(Tensor unit) {
            return unit.rows(rowOfUnit, tokens());
        }
    }

    private interface Work {
        /**
         * @param states before each of the run's chunks, and behind the last
         */
        void run(Piece piece, int sequence, Tensor states, Run run);
    }

    private void eachOwn(List<Piece> all, TokenBlocks blocks, Work work) {
        for (Piece piece : all) {
            for (int b = 0; b < sequences && piece.part == part; b++) {
                int here = piece.tokens.firstHere();
                var run =
                        new Run(
                                b * tokens + here,
                                b * blocks.tokens() + here - blocks.firstToken(),
                                piece.tokens.chunks(grid));
                work.run(piece, b, states(piece, b), run);
            }
        }
    }

    /** Returns this part's states of a run of one sequence. */
    private Tensor states(Piece piece, int sequence) {
        int first = held.get(part).stateRows(piece.tokens.firstHere(), sequences, grid);
        int rows = piece.tokens.chunks(grid).blocksPerSequence() + 1;
        return whole.states().get().rows(first + sequence * rows, rows);
    }

    /** Returns the states between this slice and its neighbour, on the way back their gradients. */
    private Tensor between() {
        return whole.states().get().rows(0, sequences);
    }

    /** Returns the row of what a run adds to the state of a sequence. */
    private Tensor gathered(Piece piece, List<Piece> all, int sequence) {
        return room.rows(firstRow(piece, all) + sequence, 1);
    }

    private int firstRow(Piece piece, List<Piece> all) {
        return (piece.part * (all.size() / held.size()) + piece.number) * sequences;
    }

    private void gather(List<Piece> all) {
        Tensor rows = room.rows(0, all.size() * sequences);
        long each = rows.elements() / held.size();
        parts.await(parts.allGather(rows, new ShardMap(rows.elements(), held.size(), each)));
    }

    /** Brings the states before a run behind it, or their gradients from behind it before it. */
    private void pass(Piece piece, List<Piece> all, Tensor state) {
        Tensor added = room.rows(firstRow(piece, all), sequences);
        int each = shape().stateOfHead();
        for (int head = 0; head < shape().heads(); head++) {
            double decay = shape().decays().get(head);
            kernels()
                    .blend(
                            1,
                            added.columns(head * each, each),
                            (float) StrictMath.pow(decay, piece.tokens.tokens()),
                            state.columns(head * each, each));
        }
    }

    private Kernels kernels() {
        return whole.kernels();
    }

    private RetentionShape shape() {
        return whole.shape();
    }
}
