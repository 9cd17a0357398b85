package dev.penstock.schedules.ir;

/**
 * Where an op stands in a schedule.
 *
 * @param position index in the program of the rank; the program's length for an op that is missing
 */
public record OpPlace(int rank, int position, Op op) {}
