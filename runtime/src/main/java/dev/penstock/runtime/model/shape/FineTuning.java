package dev.penstock.runtime.model.shape;

import dev.penstock.cuda.device.DType;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * Which parameters a run trains. The others are frozen: they have neither gradients nor moments and
 * keep their bits.
 *
 * @param adapters branches that are trained in place of the model's own parameters, if there are
 *     any
 * @param freeze names of parameters that are not trained; {@code *} stands for any text
 * @param frozen how their matrices are kept
 */
public record FineTuning(Optional<Adapters> adapters, List<String> freeze, Frozen frozen) {
    /** How a rank keeps matrices of blocks, and of the head, that it does not train. */
    public enum Frozen {
        /** In bf16 where products read bf16, and else in F32. */
        AS_MULTIPLIED,
        /** In F32; where products read bf16, a rounded copy lies beside them. */
        FLOAT32,
        /** In bf16; where products read F32, blocks' are widened before each product. */
        BF16,
        /**
         * In integers of 8 bits with a scale for each row, as {@link HeldWeights#INT8} has them:
         * the token table too. Products read them in F32.
         */
        INT8
    }

    /** Everything is trained. */
    public static final FineTuning FULL = new FineTuning(Optional.empty(), List.of());

    static final String INNER = ".lora_A.weight";
    static final String OUTER = ".lora_B.weight";

    public FineTuning {
        freeze = List.copyOf(freeze);
    }

    public FineTuning(Optional<Adapters> adapters, List<String> freeze) {
        this(adapters, freeze, Frozen.AS_MULTIPLIED);
    }

    /** Returns the same with frozen matrices kept in this way. */
    public FineTuning keeping(Frozen other) {
        return new FineTuning(adapters, freeze, other);
    }

    /** Returns whether frozen matrices exist in bf16, or fp16, alone. */
    public boolean roundsFrozen(Precision precision) {
        return switch (frozen) {
            case AS_MULTIPLIED -> precision.copiesWeights();
            case FLOAT32, INT8 -> false;
            case BF16 -> true;
        };
    }

    /** Returns the type of frozen matrices that are rounded. */
    public DType rounded(Precision precision) {
        return precision.multiply() == DType.F16 ? DType.F16 : DType.BF16;
    }

    /** Returns whether frozen matrices and token tables are held as integers. */
    public boolean holdsIntegers() {
        return frozen == Frozen.INT8;
    }

    /** Returns whether a name is that of an adapter's matrix. */
    public static boolean isAdapter(String parameter) {
        return parameter.endsWith(INNER) || parameter.endsWith(OUTER);
    }

    /** Returns whether a parameter is trained. */
    public boolean trains(String parameter) {
        return (adapters.isEmpty() || isAdapter(parameter))
                && freeze.stream().noneMatch(pattern -> matches(pattern, parameter));
    }

    /** Returns whether a pattern stands for a name. */
    public static boolean matches(String pattern, String parameter) {
        return Pattern.matches(Pattern.quote(pattern).replace("*", "\\E.*\\Q"), parameter);
    }

    /** Returns the branches beside a linear layer such as {@code attn.c_attn}. */
    public List<AdapterPlace> beside(String linear) {
        return adapters.map(each -> each.beside(linear)).orElse(List.of());
    }
}
