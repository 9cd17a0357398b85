package dev.penstock.runtime.model;

import dev.penstock.runtime.model.shape.BlockDesign;
import dev.penstock.runtime.model.shape.HeadDesign;
import dev.penstock.runtime.model.shape.ModelShape;
import dev.penstock.runtime.model.shape.Positions;
import dev.penstock.runtime.model.shape.RetentionDesign;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Models of every family that are as the golden ones in all but their sizes, which are large enough
 * for blocks of vectors and odd enough for their rests.
 */
public final class TinyFamilies {
    /** The golden models. */
    public static final List<String> NAMES =
            List.of(
                    "llama",
                    "llama3",
                    "mistral",
                    "qwen2",
                    "qwen3",
                    "gpt2-variants",
                    "gpt3",
                    "retnet",
                    "retnet-mixed");

    private static final int CONTEXT = 64;

    private TinyFamilies() {}

    /** Returns the shape of a model of the family of a golden one. */
    public static ModelShape shape(String golden) {
        ModelShape small = new GoldenFamily(golden).config().shape();
        BlockDesign block = small.block();
        HeadDesign heads = block.heads();
        Positions places =
                switch (small.positions()) {
                    case Positions.Learned _ -> new Positions.Learned(CONTEXT + 6);
                    case Positions.Rotary turned ->
                            new Positions.Rotary(
                                    CONTEXT, turned.theta(), turned.stretch(), turned.neighbours());
                };
        return new ModelShape(
                101,
                CONTEXT,
                64,
                small.layers(),
                new BlockDesign(
                        block.norm(),
                        new HeadDesign(
                                heads.queries(),
                                heads.keys(),
                                2 * heads.size(),
                                heads.norms(),
                                heads.scaledByLayer(),
                                doubled(heads.retention())),
                        block.biases(),
                        block.activation(),
                        76,
                        block.windows().stream()
                                .map(window -> window > 0 ? 4 * window : window)
                                .toList()),
                places,
                small.tied());
    }

    private static @Nullable RetentionDesign doubled(@Nullable RetentionDesign design) {
        return design == null
                ? null
                : new RetentionDesign(2 * design.valueSize(), design.gated(), design.decay());
    }
}
