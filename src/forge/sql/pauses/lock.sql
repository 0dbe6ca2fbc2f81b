-- Let one transaction at a time change pauses; claims and surveys read them meanwhile.
lock table forge_pauses in share row exclusive mode;
