package dev.penstock.schedules.plan.work;

/**
 * How devices are divided. Pipeline rank p has the devices from {@code p * tensor * data} on: the
 * shards of a replica stand together, then the replicas, so that the most talkative neighbours are
 * nearest.
 *
 * @param pipeline ranks of the pipeline
 * @param tensor shards of every matrix
 * @param data replicas
 */
public record Layout(int pipeline, int tensor, int data) {
    public Layout {
        if (pipeline < 1 || tensor < 1 || data < 1) {
            throw new IllegalArgumentException(
                    "a layout needs 1 of each or more, got pipeline %d, tensor %d, data %d"
                            .formatted(pipeline, tensor, data));
        }
    }

    /** Devices of one pipeline rank, all shards and replicas. */
    public int devicesPerRank() {
        return tensor * data;
    }

    /** All devices in use. */
    public int devices() {
        return pipeline * tensor * data;
    }
}
