package dev.penstock.runtime.model.layers;

import static java.util.Objects.requireNonNull;

import dev.penstock.actors.collective.Collective;
import dev.penstock.actors.collective.CollectiveGroup;
import dev.penstock.actors.collective.SoloGroup;
import dev.penstock.cuda.device.AttentionShape;
import dev.penstock.cuda.device.DType;
import dev.penstock.cuda.device.EarlierKeys;
import dev.penstock.cuda.device.Kernels;
import dev.penstock.cuda.device.Tensor;
import dev.penstock.cuda.device.TokenBlocks;
import dev.penstock.runtime.model.activations.LayerActivations;
import dev.penstock.runtime.model.shape.BatchShape;
import dev.penstock.runtime.model.shape.PartTokens;
import java.util.ArrayList;
import java.util.List;

/**
 * Attention over sequences whose tokens are spread over several ranks according to {@link
 * PartTokens} (ring attention, Liu et al., arXiv 2310.01889). Queries stay; keys and values travel
 * around the ring, from each part to the next, and meet the queries of every part on their way:
 *
 * <pre>
 *            hop 0     hop 1     hop 2
 *   part 0   kv 0  \   kv 2  \   kv 1        the next transfer is hidden behind this hop's products
 *   part 1   kv 1  \   kv 0  \   kv 2
 *   part 2   kv 2  \   kv 1  \   kv 0
 * </pre>
 *
 * <p>In the backward they travel around again, followed by their gradients, to which every part
 * adds its share, and which return home from the last part. A part sees the following chunks of
 * another's block in the same slice, E (early) and L (late):
 *
 * <pre>
 *                     an earlier part's       a later part's
 *   early queries     E                       none of this slice
 *   late queries      E                       E L
 * </pre>
 *
 * <p>All queries see everything of earlier slices. A rank holds the keys and values of no more than
 * two parts besides its own. Sums are taken in the order of hops, whatever the order of arrival.
 *
 * <p>Where queries have a window, what they see depends on places: every run of consecutive queries
 * meets every run of consecutive keys before it apart, also those of its own part.
 */
public final class RingAttention implements Attention {
    private final Kernels kernels;
    private final DType multiply;
    private final RingBuffers buffers;
    private final int sequences;
    private final int tokens;
    private final AttentionShape shape;
    private final List<PartTokens> held;
    private final int grid;
    private final int columns;
    private final int parts;
    private final int part;
    private CollectiveGroup ring = SoloGroup.GROUP;

    /**
     * @param held entry i: the tokens of a sequence that part i holds
     * @param part this one
     * @param buffers may serve several attentions, one at a time
     */
    public RingAttention(
            Kernels kernels,
            DType multiply,
            AttentionShape shape,
            BatchShape batchOfPart,
            List<PartTokens> held,
            int part,
            RingBuffers buffers) {
        this.kernels = kernels;
        this.multiply = multiply;
        this.buffers = buffers;
        this.held = List.copyOf(held);
        parts = held.size();
        this.part = part;
        this.shape = shape;
        sequences = batchOfPart.sequences();
        tokens = batchOfPart.context();
        grid = batchOfPart.grid();
        columns = shape.queryColumns();
    }

    @Override
    public void connect(CollectiveGroup context) {
        ring = context;
    }

    @Override
    public void forward(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        RingBuffers moving = load(qkv, blocks);
        Collective pass = ring.pass(moving.keyValues().get(0), moving.keyValues().get(1));
        forwardHere(qkv, a, blocks);
        for (int hop = 1; hop < parts; hop++) {
            ring.await(pass);
            Tensor here = moving.keyValues().get(hop % 2);
            if (hop < parts - 1) {
                pass = ring.pass(here, moving.keyValues().get((hop + 1) % 2));
            }
            for (Seen seen : seen(hop, blocks)) {
                for (int b = 0; b < sequences; b++) {
                    kernels.attentionToEarlier(
                            multiply,
                            queries(qkv, blocks, b, seen),
                            keyValues(here, blocks, b, seen),
                            inUnit(a.attended(), blocks, b, seen),
                            inUnit(a.logSumExp(), blocks, b, seen),
                            seen.shape());
                    pass.advance();
                }
            }
        }
    }

    @Override
    public void backward(
            Tensor qkv, LayerActivations a, Tensor dAttended, Tensor dQkv, TokenBlocks blocks) {
        RingBuffers moving = load(qkv, blocks);
        Collective pass = ring.pass(moving.keyValues().get(0), moving.keyValues().get(1));
        Collective gradientPass = SoloGroup.DONE;
        backwardHere(qkv, a, dAttended, dQkv, blocks);
        for (int hop = 1; hop < parts; hop++) {
            ring.await(pass);
            Tensor here = moving.keyValues().get(hop % 2);
            if (hop < parts - 1) {
                pass = ring.pass(here, moving.keyValues().get((hop + 1) % 2));
            }
            Tensor gradient = moving.gradients().get(hop % 2);
            Tensor added = hop == 1 ? gradient : requireNonNull(moving.added());
            kernels.zero(added);
            backward(qkv, a, dAttended, dQkv, blocks, hop, here, added);
            if (hop > 1) {
                ring.await(gradientPass);
                kernels.add(added, gradient);
            }
            gradientPass = ring.pass(gradient, moving.gradients().get((hop + 1) % 2));
        }
        ring.await(gradientPass);
        Tensor home = moving.gradients().get(parts % 2);
        for (int b = 0; b < sequences; b++) {
            kernels.add(ofSequence(home, b), keysAndValues(dQkv, b, home.rows() / sequences));
        }
    }

    /** Attends to this part's own keys. */
    private void forwardHere(Tensor qkv, LayerActivations a, TokenBlocks blocks) {
        if (!isWindowed()) {
            kernels.attention(multiply, qkv, a.attended(), a.logSumExp(), shape, tokens, blocks);
            return;
        }
        for (int b = 0; b < sequences; b++) {
            for (PartTokens.Run run : held.get(part).of(blocks.firstToken(), blocks.tokens())) {
                Seen own = own(run, blocks);
                kernels.attention(
                        multiply,
                        qkv.rows(b * tokens + run.firstHere(), run.tokens()),
                        inUnit(a.attended(), blocks, b, own),
                        inUnit(a.logSumExp(), blocks, b, own),
                        shape,
                        run.tokens(),
                        new TokenBlocks(1, run.tokens(), 0, grid));
            }
            for (Seen seen : seenInWindow(part, blocks)) {
                kernels.attentionToEarlier(
                        multiply,
                        queries(qkv, blocks, b, seen),
                        ownKeyValues(qkv, b, seen),
                        inUnit(a.attended(), blocks, b, seen),
                        inUnit(a.logSumExp(), blocks, b, seen),
                        seen.shape());
            }
        }
    }

    private void backwardHere(
            Tensor qkv, LayerActivations a, Tensor dAttended, Tensor dQkv, TokenBlocks blocks) {
        if (!isWindowed()) {
            kernels.attentionBackward(
                    multiply,
                    qkv,
                    a.attended(),
                    a.logSumExp(),
                    dAttended,
                    dQkv,
                    shape,
                    tokens,
                    blocks);
            return;
        }
        for (int b = 0; b < sequences; b++) {
            for (PartTokens.Run run : held.get(part).of(blocks.firstToken(), blocks.tokens())) {
                Seen own = own(run, blocks);
                kernels.attentionBackward(
                        multiply,
                        qkv.rows(b * tokens + run.firstHere(), run.tokens()),
                        inUnit(a.attended(), blocks, b, own),
                        inUnit(a.logSumExp(), blocks, b, own),
                        inUnit(dAttended, blocks, b, own),
                        dQkv.rows(b * tokens + run.firstHere(), run.tokens()),
                        shape,
                        run.tokens(),
                        new TokenBlocks(1, run.tokens(), 0, grid));
            }
            for (Seen seen : seenInWindow(part, blocks)) {
                kernels.attentionToEarlierBackward(
                        multiply,
                        queries(qkv, blocks, b, seen),
                        ownKeyValues(qkv, b, seen),
                        inUnit(a.attended(), blocks, b, seen),
                        inUnit(a.logSumExp(), blocks, b, seen),
                        inUnit(dAttended, blocks, b, seen),
                        queries(dQkv, blocks, b, seen),
                        ownKeyValues(dQkv, b, seen),
                        seen.shape());
            }
        }
    }

    /** Returns a run of queries that meet themselves. */
    private Seen own(PartTokens.Run run, TokenBlocks blocks) {
        return all(run.firstHere() - blocks.firstToken(), run.tokens(), run.tokens());
    }

    private Tensor ownKeyValues(Tensor qkv, int sequence, Seen seen) {
        return keysAndValues(qkv).rows(sequence * tokens + seen.firstKey(), seen.keys());
    }

    private void backward(
            Tensor qkv,
            LayerActivations a,
            Tensor dAttended,
            Tensor dQkv,
            TokenBlocks blocks,
            int hop,
            Tensor keyValues,
            Tensor added) {
        for (Seen seen : seen(hop, blocks)) {
            for (int b = 0; b < sequences; b++) {
                kernels.attentionToEarlierBackward(
                        multiply,
                        queries(qkv, blocks, b, seen),
                        keyValues(keyValues, blocks, b, seen),
                        inUnit(a.attended(), blocks, b, seen),
                        inUnit(a.logSumExp(), blocks, b, seen),
                        inUnit(dAttended, blocks, b, seen),
                        queries(dQkv, blocks, b, seen),
                        keyValues(added, blocks, b, seen),
                        seen.shape());
            }
        }
    }

    /**
     * Copies this part's keys and values of the slice and those before it into the ring buffers.
     */
    private RingBuffers load(Tensor qkv, TokenBlocks blocks) {
        int seenTokens = blocks.firstToken() + blocks.tokens();
        RingBuffers moving = buffers.first(sequences * seenTokens);
        Tensor own = moving.keyValues().getFirst();
        for (int b = 0; b < sequences; b++) {
            kernels.copy(keysAndValues(qkv, b, seenTokens), ofSequence(own, b));
        }
        return moving;
    }

    /**
     * Some queries of a unit, and the keys of a part that they see, counted among the part's
     * tokens.
     *
     * @param firstQuery among the part's tokens of the slice
     */
    private record Seen(int firstQuery, int queries, int firstKey, int keys, EarlierKeys shape) {}

    private List<Seen> seen(int hop, TokenBlocks blocks) {
        int from = (part - hop + parts) % parts;
        return isWindowed() ? seenInWindow(from, blocks) : seenWhole(from, blocks);
    }

    private boolean isWindowed() {
        return shape.window() != AttentionShape.NO_WINDOW;
    }

    private List<Seen> seenInWindow(int from, TokenBlocks blocks) {
        List<Seen> all = new ArrayList<>();
        int before = blocks.firstToken();
        for (PartTokens.Run queries : held.get(part).of(before, blocks.tokens())) {
            for (PartTokens.Run keys : held.get(from).of(0, before + blocks.tokens())) {
                int distance = queries.first() - keys.first();
                boolean earlier = distance >= keys.tokens();
                boolean near = distance - keys.tokens() + 1 < shape.window();
                if (earlier && near) {
                    all.add(
                            new Seen(
                                    queries.firstHere() - before,
                                    queries.tokens(),
                                    keys.firstHere(),
                                    keys.tokens(),
                                    new EarlierKeys(shape, distance)));
                }
            }
        }
        return all;
    }

    private List<Seen> seenWhole(int from, TokenBlocks blocks) {
        int before = blocks.firstToken();
        int early = PartTokens.early(blocks.tokens());
        int late = blocks.tokens() - early;
        List<Seen> all =
                from < part
                        ? List.of(all(0, blocks.tokens(), before + early))
                        : List.of(
                                all(0, early, before), all(early, late, before + blocks.tokens()));
        return all.stream().filter(seen -> seen.queries() > 0 && seen.keys() > 0).toList();
    }

    /** Without a window the order of the keys says enough, wherever they lie. */
    private Seen all(int firstQuery, int queries, int keys) {
        return new Seen(firstQuery, queries, 0, keys, new EarlierKeys(shape, keys));
    }

    private Tensor queries(Tensor qkv, TokenBlocks blocks, int sequence, Seen seen) {
        int first = sequence * tokens + blocks.firstToken() + seen.firstQuery();
        return qkv.rows(first, seen.queries()).columns(0, columns);
    }

    private static Tensor inUnit(Tensor tensor, TokenBlocks blocks, int sequence, Seen seen) {
        return tensor.rows(sequence * blocks.tokens() + seen.firstQuery(), seen.queries());
    }

    private static Tensor keyValues(Tensor block, TokenBlocks blocks, int sequence, Seen seen) {
        int first = sequence * (blocks.firstToken() + blocks.tokens()) + seen.firstKey();
        return block.rows(first, seen.keys());
    }

    private Tensor ofSequence(Tensor block, int sequence) {
        int each = block.rows() / sequences;
        return block.rows(sequence * each, each);
    }

    /**
     * Returns the keys and values of a sequence's first tokens in a tensor of queries, keys and
     * values.
     */
    private Tensor keysAndValues(Tensor qkv, int sequence, int count) {
        return keysAndValues(qkv).rows(sequence * tokens, count);
    }

    private Tensor keysAndValues(Tensor qkv) {
        return qkv.columns(columns, 2 * shape.keyColumns());
    }
}
