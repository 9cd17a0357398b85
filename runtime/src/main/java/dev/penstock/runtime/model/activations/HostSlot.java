package dev.penstock.runtime.model.activations;

import dev.penstock.cuda.device.DeviceBuffer;

import java.util.List;

/**
 * Room on the host for what one unit keeps.
 *
 * @param unit as large as the largest unit's slot
 * @param queryKeyValues as large as those of a micro-batch, by block; none where sequences are cut
 */
record HostSlot(DeviceBuffer unit, List<DeviceBuffer> queryKeyValues) {

    void from(DeviceBuffer ofUnit, List<DeviceBuffer> ofMicroBatch) {
        ofUnit.read(0, unit.segment().asSlice(0, ofUnit.bytes()));
        for (int i = 0; i < ofMicroBatch.size(); i++) {
            ofMicroBatch.get(i).read(0, queryKeyValues.get(i).segment());
        }
    }

    void to(DeviceBuffer ofUnit, List<DeviceBuffer> ofMicroBatch) {
        ofUnit.write(0, unit.segment().asSlice(0, ofUnit.bytes()));
        for (int i = 0; i < ofMicroBatch.size(); i++) {
            ofMicroBatch.get(i).write(0, queryKeyValues.get(i).segment());
        }
    }
}
