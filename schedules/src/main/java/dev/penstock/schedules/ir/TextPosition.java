package dev.penstock.schedules.ir;

/** A place in a text, both from 1. */
public record TextPosition(int line, int column) {}
