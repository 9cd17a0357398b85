package dev.penstock.schedules.ir;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The text of one op: {@code <stage><kind><microBatch>[s<slice>]}, such as {@code 2F0}, {@code
 * 2B0s1}, {@code 0SEND_F3}, {@code 1OFFLOAD2}; of an overlapped pair {@code (0F7;7B3)OVERLAP_F_B}
 * ({@code _F} and {@code _W} with another forward or a backward for the weights); of ops of a whole
 * stage {@code 0REDUCE_GRAD}, {@code 1UNSHARD}, {@code 1RESHARD[0-3]}. The same names stand in
 * files, traces and messages.
 */
public final class OpText {
    private static final Pattern UNIT_OP =
            Pattern.compile("(\\d{1,9})([A-Z_]+)(\\d{1,9})(?:s(\\d{1,9}))?");
    private static final Pattern STAGE_OP =
            Pattern.compile("(\\d{1,9})([A-Z_]+)(?:\\[(\\d{1,9})-(\\d{1,9})])?");
    private static final Pattern PAIR =
            Pattern.compile("\\(([^;()]+);([^;()]+)\\)OVERLAP_F_([BFW])");

    private OpText() {}

    /** The text of an op; the slice is named only where sequences are cut. */
    public static String print(Op op, PipelineShape shape) {
        return print(op, shape.slices() > 1);
    }

    /** The text of an op with or without its slice. */
    public static String print(Op op, boolean withSlice) {
        return switch (op) {
            case Op.UnitOp unitOp -> {
                WorkUnit unit = unitOp.unit();
                String text = unit.stage() + kind(unitOp) + unit.microBatch();
                yield withSlice ? text + "s" + unit.slice() : text;
            }
            case Op.Overlapped(Op.Forward forward, Op.Compute partner) ->
                    "(%s;%s)OVERLAP_F_%s"
                            .formatted(
                                    print(forward, withSlice),
                                    print(partner, withSlice),
                                    pairKind(partner));
            case Op.GatherParameters(int stage, LayerRange layers) ->
                    stage + "UNSHARD" + print(layers);
            case Op.ReleaseParameters(int stage, LayerRange layers) ->
                    stage + "RESHARD" + print(layers);
            case Op.ReduceGradients(int stage) -> stage + "REDUCE_GRAD";
        };
    }

    /** A backward has one name in pairs, split or not. */
    private static String pairKind(Op.Compute partner) {
        return partner instanceof Op.InputGradient ? "B" : kind(partner);
    }

    private static String print(LayerRange layers) {
        return layers.isAll() ? "" : "[%d-%d]".formatted(layers.first(), layers.last());
    }

    private static String kind(Op.UnitOp op) {
        return switch (op) {
            case Op.Forward _ -> "F";
            case Op.Backward _ -> "B";
            case Op.BackwardInput _ -> "I";
            case Op.BackwardWeight _ -> "W";
            case Op.Recompute _ -> "R";
            case Op.SendActivation _ -> "SEND_F";
            case Op.ReceiveActivation _ -> "RECV_F";
            case Op.SendGradient _ -> "SEND_B";
            case Op.ReceiveGradient _ -> "RECV_B";
            case Op.Offload _ -> "OFFLOAD";
            case Op.Reload _ -> "RELOAD";
        };
    }

    /**
     * The op of a text; empty if it is none. A text without a slice is one of slice 0.
     *
     * @see #namesSlice
     */
    public static Optional<Op> parse(String text) {
        Matcher unitOp = UNIT_OP.matcher(text);
        if (unitOp.matches()) {
            int slice = unitOp.group(4) == null ? 0 : Integer.parseInt(unitOp.group(4));
            var unit =
                    new WorkUnit(
                            Integer.parseInt(unitOp.group(1)),
                            Integer.parseInt(unitOp.group(3)),
                            slice);
            return unitOp(unitOp.group(2), unit);
        }
        Matcher pair = PAIR.matcher(text);
        if (pair.matches()) {
            return pair(parse(pair.group(1)), parse(pair.group(2)), pair.group(3));
        }
        Matcher stageOp = STAGE_OP.matcher(text);
        return stageOp.matches() ? stageOp(stageOp) : Optional.empty();
    }

    private static Optional<Op> unitOp(String kind, WorkUnit unit) {
        return switch (kind) {
            case "F" -> Optional.of(new Op.Forward(unit));
            case "B" -> Optional.of(new Op.Backward(unit));
            case "I" -> Optional.of(new Op.BackwardInput(unit));
            case "W" -> Optional.of(new Op.BackwardWeight(unit));
            case "R" -> Optional.of(new Op.Recompute(unit));
            case "SEND_F" -> Optional.of(new Op.SendActivation(unit));
            case "RECV_F" -> Optional.of(new Op.ReceiveActivation(unit));
            case "SEND_B" -> Optional.of(new Op.SendGradient(unit));
            case "RECV_B" -> Optional.of(new Op.ReceiveGradient(unit));
            case "OFFLOAD" -> Optional.of(new Op.Offload(unit));
            case "RELOAD" -> Optional.of(new Op.Reload(unit));
            default -> Optional.empty();
        };
    }

    private static Optional<Op> pair(Optional<Op> forward, Optional<Op> partner, String kind) {
        return forward.isPresent()
                        && forward.get() instanceof Op.Forward f
                        && partner.isPresent()
                        && partner.get() instanceof Op.Compute p
                        && pairKind(p).equals(kind)
                ? Optional.of(new Op.Overlapped(f, p))
                : Optional.empty();
    }

    private static Optional<Op> stageOp(Matcher match) {
        int stage = Integer.parseInt(match.group(1));
        boolean ranged = match.group(3) != null;
        int first = ranged ? Integer.parseInt(match.group(3)) : 0;
        int last = ranged ? Integer.parseInt(match.group(4)) : 0;
        if (last < first) {
            return Optional.empty();
        }
        LayerRange layers = ranged ? new LayerRange(first, last) : LayerRange.ALL;
        return switch (match.group(2)) {
            case "UNSHARD" -> Optional.of(new Op.GatherParameters(stage, layers));
            case "RESHARD" -> Optional.of(new Op.ReleaseParameters(stage, layers));
            case "REDUCE_GRAD" ->
                    ranged ? Optional.empty() : Optional.of(new Op.ReduceGradients(stage));
            default -> Optional.empty();
        };
    }

    /** Whether an op's text says which slice it is of; of a pair, whether both halves do. */
    public static boolean namesSlice(String text) {
        int half = text.indexOf(';');
        return text.lastIndexOf('s') > half
                && (half < 0 || text.indexOf('s') < half)
                && text.indexOf('s') >= 0;
    }
}
