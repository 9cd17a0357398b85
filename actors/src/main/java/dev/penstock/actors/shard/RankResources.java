package dev.penstock.actors.shard;

import dev.penstock.actors.dataplane.DataPlane;
import dev.penstock.actors.spi.CheckpointStore;
import dev.penstock.actors.spi.DeviceFactory;
import dev.penstock.actors.spi.RunPlan;
import dev.penstock.actors.spi.StageProgramFactory;

/** What a process gives to the ranks that it hosts. Never leaves the process. */
public record RankResources(
        RunPlan plan,
        DeviceFactory devices,
        StageProgramFactory programs,
        DataPlane dataPlane,
        CheckpointStore checkpoints) {}
