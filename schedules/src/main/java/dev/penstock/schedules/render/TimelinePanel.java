package dev.penstock.schedules.render;

import dev.penstock.schedules.simulate.Timeline;

/** A timeline with a title, simulated or measured, as one part of a picture. */
public record TimelinePanel(String title, Timeline timeline, TimeScale scale) {
    /** What one nanosecond of the timeline stands for. */
    public enum TimeScale {
        /** A unit of cost. */
        UNITS,
        /** A nanosecond. */
        NANOS
    }

    /** A simulation with unit costs. */
    public static TimelinePanel units(String title, Timeline timeline) {
        return new TimelinePanel(title, timeline, TimeScale.UNITS);
    }

    /** A measured step, or a simulation with measured costs. */
    public static TimelinePanel nanos(String title, Timeline timeline) {
        return new TimelinePanel(title, timeline, TimeScale.NANOS);
    }
}
