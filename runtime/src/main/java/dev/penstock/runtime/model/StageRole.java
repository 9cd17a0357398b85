package dev.penstock.runtime.model;

/**
 * What one stage holds of the model.
 *
 * @param stage global stage index
 * @param firstLayer index of its first transformer block in the model
 * @param layers number of its transformer blocks
 * @param first whether it has the embedding
 * @param last whether it has the final norm and the head
 */
public record StageRole(int stage, int firstLayer, int layers, boolean first, boolean last) {
    /** The whole model as one stage. */
    static StageRole whole(GptShape shape) {
        return new StageRole(0, 0, shape.layers(), true, true);
    }
}
