package dev.penstock.actors.shard;

import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.fault.FaultInjector;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.DeviceFactory;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageProgramFactory;

/**
 * What a process gives to the ranks that it hosts. Never leaves the process.
 *
 * @param faults what is made to go wrong on purpose
 */
public record RankResources(
        RunPlan plan,
        DeviceFactory devices,
        StageProgramFactory programs,
        DataPlane dataPlane,
        CheckpointStore checkpoints,
        FaultInjector faults) {

    /** Nothing goes wrong on purpose. */
    public RankResources(
            RunPlan plan,
            DeviceFactory devices,
            StageProgramFactory programs,
            DataPlane dataPlane,
            CheckpointStore checkpoints) {
        this(plan, devices, programs, dataPlane, checkpoints, FaultInjector.NONE);
    }
}
