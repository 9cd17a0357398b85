package dev.penstock.schedules.plan.work;

/**
 * What of a model is trained where not all of it is. Only that has gradients, optimizer state and
 * products for the weights. Blocks count as if each had the mean of all.
 *
 * @param adapters parameters of one block beside those of the model, trained or not
 * @param block parameters of one block that are trained, its adapters included
 * @param products parameters of one block whose gradients are matrix products
 * @param embedding trained parameters of the token and position embeddings
 * @param lastNorm trained parameters of the last norm
 * @param head whether the head's matrix is trained; a tied one is that of the embedding
 */
public record TrainedShape(
        long adapters, long block, long products, long embedding, long lastNorm, boolean head) {
    public TrainedShape {
        if (adapters < 0 || block < products || products < 0 || embedding < 0 || lastNorm < 0) {
            throw new IllegalArgumentException(
                    "no part of a model has less than 0 parameters, got adapters %d, block %d, products %d, embedding %d, last norm %d"
                            .formatted(adapters, block, products, embedding, lastNorm));
        }
    }
}
