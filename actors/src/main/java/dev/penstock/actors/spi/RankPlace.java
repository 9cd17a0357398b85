package dev.penstock.actors.spi;

/**
 * What a rank is in the grid of ranks; all from 0.
 *
 * @param pipeline which program of the schedule it runs
 * @param tensor which tensor shard it is
 * @param context which part of a sequence it holds
 * @param data which replica it belongs to
 */
public record RankPlace(int pipeline, int tensor, int context, int data) {
    /** The only rank of a pipeline stage. */
    public static RankPlace single(int pipeline) {
        return new RankPlace(pipeline, 0, 0, 0);
    }
}
