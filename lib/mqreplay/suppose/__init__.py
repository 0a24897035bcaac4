"""What other settings would have done: suppositions, advice, predictions and their proof."""
