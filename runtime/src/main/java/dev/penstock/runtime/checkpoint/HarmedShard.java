package dev.penstock.runtime.checkpoint;

import dev.penstock.actors.fault.SaveFaults;
import dev.penstock.actors.fault.SavePoint;
import dev.penstock.runtime.safetensors.SafetensorsWriter;
import java.io.IOException;

/**
 * Injects faults while a shard is written.
 *
 * @param bytes that the shard will have
 */
record HarmedShard(SaveFaults faults, long step, long bytes) implements SafetensorsWriter.Progress {
    @Override
    public void beforeWrite(long written, long count) throws IOException {
        if (written < bytes / 2 && written + count >= bytes / 2) {
            faults.at(SavePoint.SHARD_HALF_WRITTEN, step);
        }
        if (written == bytes) {
            faults.at(SavePoint.SHARD_WRITTEN, step);
        }
        faults.beforeWrite(step, written, count);
    }
}
