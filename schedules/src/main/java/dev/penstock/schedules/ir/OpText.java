package dev.penstock.schedules.ir;

import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The text of one op: {@code <stage><kind><microBatch>[s<slice>]}, such as {@code 2F0}, {@code
 * 2B0s1}, {@code 0SEND_F3}, {@code 0REDUCE_GRAD}. The same names stand in files, traces and
 * messages.
 */
public final class OpText {
    private static final Pattern OP =
            Pattern.compile("(\\d{1,9})([A-Z_]+)(?:(\\d{1,9})(?:s(\\d{1,9}))?)?");

    private OpText() {}

    /** The text of an op; the slice is named only where sequences are cut. */
    public static String print(Op op, PipelineShape shape) {
        return print(op, shape.slices() > 1);
    }

    /** The text of an op with or without its slice. */
    public static String print(Op op, boolean withSlice) {
        String kind = kind(op);
        return switch (op) {
            case Op.UnitOp unitOp -> {
                WorkUnit unit = unitOp.unit();
                String text = unit.stage() + kind + unit.microBatch();
                yield withSlice ? text + "s" + unit.slice() : text;
            }
            case Op.ReduceGradients(int stage) -> stage + kind;
        };
    }

    private static String kind(Op op) {
        return switch (op) {
            case Op.Forward _ -> "F";
            case Op.Backward _ -> "B";
            case Op.SendActivation _ -> "SEND_F";
            case Op.ReceiveActivation _ -> "RECV_F";
            case Op.SendGradient _ -> "SEND_B";
            case Op.ReceiveGradient _ -> "RECV_B";
            case Op.ReduceGradients _ -> "REDUCE_GRAD";
        };
    }

    /**
     * The op of a text; empty if it is none. A text without a slice is one of slice 0.
     *
     * @see #namesSlice
     */
    public static Optional<Op> parse(String text) {
        Matcher match = OP.matcher(text);
        if (!match.matches()) {
            return Optional.empty();
        }
        int stage = Integer.parseInt(match.group(1));
        @Nullable String microBatch = match.group(3);
        if (microBatch == null) {
            return match.group(2).equals("REDUCE_GRAD")
                    ? Optional.of(new Op.ReduceGradients(stage))
                    : Optional.empty();
        }
        @Nullable String slice = match.group(4);
        var unit =
                new WorkUnit(
                        stage,
                        Integer.parseInt(microBatch),
                        slice == null ? 0 : Integer.parseInt(slice));
        return unitOp(match.group(2), unit);
    }

    private static Optional<Op> unitOp(String kind, WorkUnit unit) {
        return switch (kind) {
            case "F" -> Optional.of(new Op.Forward(unit));
            case "B" -> Optional.of(new Op.Backward(unit));
            case "SEND_F" -> Optional.of(new Op.SendActivation(unit));
            case "RECV_F" -> Optional.of(new Op.ReceiveActivation(unit));
            case "SEND_B" -> Optional.of(new Op.SendGradient(unit));
            case "RECV_B" -> Optional.of(new Op.ReceiveGradient(unit));
            default -> Optional.empty();
        };
    }

    /** Whether an op's text says which slice it is of. */
    public static boolean namesSlice(String text) {
        return text.indexOf('s') >= 0;
    }
}
