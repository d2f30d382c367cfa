"""Files of a job that are no traces: dumps of the Flight Recorder of torch.distributed."""
