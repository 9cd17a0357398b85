package dev.penstock.runtime.model.family;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.penstock.runtime.model.shape.ModelShape;
import java.util.List;

/** A family of models: how it is described and stored by those who publish it. */
public interface Family {
    /** Returns what {@code model_type} says, which is also the family's name in configurations. */
    String word();

    /**
     * Reads the shape of a model, for the longest sequences that it is meant for. What is wrong is
     * left with the configuration; the shape then has sizes that mean nothing.
     *
     * @throws IllegalArgumentException if the numbers are sound one by one and still make no model
     */
    ModelShape shape(ConfigJson config);

    /**
     * Returns a model of the family with nothing unusual.
     *
     * @param most tokens of a sequence, and of the longest that the model can read
     */
    ModelShape usual(int vocabulary, int most, int width, int layers, int heads, boolean tied);

    /** Writes what {@link #shape} reads. What the family does not have is left out. */
    void describe(ModelShape shape, ObjectNode config);

    /**
     * Writes what is dropped in training, where the family's files say it: the same share of the
     * embeddings and of what each branch of a block adds, and nothing of attention's probabilities.
     */
    default void describeDropout(double probability, ObjectNode config) {}

    /** Returns all tensors of a model, named and in the order in which they are published. */
    List<StoredPart> parts(ModelShape shape);

    /** Returns tensors of a head that a file may have though its model does not use them. */
    default List<StoredPart> spareParts(ModelShape shape) {
        return List.of();
    }

    /** Returns what some files have in front of most names and others do not. */
    String prefix();

    /** Returns a tensor's name without the {@link #prefix}, so that both forms are found. */
    default String bareName(String stored) {
        return stored.startsWith(prefix()) ? stored.substring(prefix().length()) : stored;
    }

    /**
     * Returns whether a tensor is of a head: files of other tasks may have it or lack it, and a
     * model that starts from such a file gets new ones.
     */
    default boolean isOfHead(String bareName) {
        return false;
    }

    /** Returns whether a file may have a tensor that is no parameter. */
    boolean isConstant(String bareName);
}
